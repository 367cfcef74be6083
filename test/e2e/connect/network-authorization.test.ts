import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { type Identity, noOpenssl, TestCa } from "../../helpers/certificates.ts";
import { TestPlane } from "../../helpers/data-plane.ts";
import { LocalGateway } from "../../helpers/local-gateway.ts";
import { RawPeer, RawUpstream, reply, statusOf } from "../../helpers/raw-peer.ts";
import { get, logged, NO_RESPONSE } from "../tls/support.ts";

const REQUEST = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
const proxied = (address: string): string => `PROXY TCP4 ${address} 198.51.100.2 4000 443\r\n`;

suite("networkAuthorization", () => {
  test("is evaluated once per connection, with the address of the PROXY header; rejected connections are closed without a response", async () => {
    await using upstream = await RawUpstream.answering(() => reply("hello"));
    await using plane = await TestPlane.start(upstream.port, {
      frontend: {
        proxyProtocol: { version: "v1", mode: "strict" },
        networkAuthorization: [
          { mode: "allow", expression: 'source.address.startsWith("10.") && destination.port == 443' },
          { mode: "allow", expression: 'source.address == "192.0.2.7"' },
          { mode: "deny", expression: 'source.address == "10.9.9.9"' },
          { mode: "deny", expression: 'source.subject == "of no certificate"' },
          { mode: "require", expression: 'source.rawAddress == "127.0.0.1"' },
        ],
      },
    });
    for (const [address, allowed] of [
      ["10.0.0.1", true],
      ["192.0.2.7", true],
      ["192.0.2.8", false],
      ["10.9.9.9", false],
    ] as const) {
      const client = await RawPeer.connect(plane.port);
      client.send(proxied(address) + REQUEST);
      if (allowed) {
        assert.equal(statusOf(await client.message()), 200);
        client.end();
      } else {
        await client.closed();
        assert.equal(client.received, "");
        assert.equal((await plane.logged("authorization failed"))["src.addr"], `${address}:4000`);
      }
      plane.lines.length = 0;
    }
  });
});

test("a watcher sees the end of a rejected connection, with the rule and where it was written", async () => {
  await using gateway = await LocalGateway.start({
    frontendPolicies: { networkAuthorization: { rules: [{ allow: "true" }, { deny: "source.port > 0 && true" }] } },
    binds: [{ port: 0, listeners: [{ routes: [{ policies: { directResponse: { status: 200 } } }] }] }],
  });
  let port = 0;
  const messages = await gateway.trace(async () => {
    const client = await RawPeer.connect(gateway.port());
    port = client.socket.localPort ?? 0;
    await client.closed();
  });
  const [started, snapshot, finished] = messages;
  assert.deepEqual(started, { type: "requestStarted", protocol: "tcp" });
  assert.equal(snapshot?.type === "requestSnapshot" && snapshot.requestState.source?.port, port);
  assert.deepEqual(finished, {
    type: "requestFinished",
    status: null,
    error: `authorization failed: deny rules[1] is true (source.port: ${port})`,
    origin: { path: ["frontendPolicies", "networkAuthorization", "rules", 1] },
  });
  assert.equal(messages.length, 3);
});

suite("networkAuthorization by certificate", { skip: noOpenssl }, () => {
  let ca: TestCa;
  let host: Identity;
  let friend: Identity;
  let stranger: Identity;
  before(() => {
    ca = new TestCa();
    host = ca.issue("host.example");
    friend = ca.issue("friend.example", "other.example");
    stranger = ca.issue("stranger.example");
  });
  after(() => ca[Symbol.dispose]());

  test("rules read the names in the client's certificate", async () => {
    await using upstream = await RawUpstream.answering(() => reply("hello"));
    const tls = { cert: host.certFile, key: host.keyFile, root: ca.certFile, keyExchangeGroups: ["P-384"] };
    const routes = [{ backends: [{ host: `127.0.0.1:${upstream.port}` }] }];
    const rules = [
      {
        require:
          'source.subjectCn == "friend.example" && source.subject == "CN=friend.example" && ' +
          'source.issuer == "CN=test CA" && source.subjectAltNames == ["friend.example", "other.example"] && ' +
          'source.certificate.startsWith("-----BEGIN CERTIFICATE-----") && destination.hostname == "host.example"',
      },
    ];
    await using gateway = await LocalGateway.start({
      frontendPolicies: { networkAuthorization: { rules } },
      binds: [{ port: 0, listeners: [{ protocol: "HTTPS", tls, routes }] }],
    });
    const options = ({ cert, key }: Identity): object => ({ ca: ca.cert, cert, key });
    const answer = await get(gateway.port(), "host.example", { ...options(friend), ecdhCurve: "secp384r1" });
    assert.equal(answer.body, "hello");
    await assert.rejects(get(gateway.port(), "host.example", options(stranger)), NO_RESPONSE);
    await logged(gateway, { message: "rejected" });
    const { error } = gateway.lines.find(({ message }) => message === "rejected") ?? {};
    assert.match(
      String(error),
      /^authorization failed: require rules\[0\] is not true \(source\.subjectCn: "stranger\.example", /,
    );
    assert.match(String(error), /, at frontendPolicies\.networkAuthorization\.rules\[0\]$/);
    await assert.rejects(get(gateway.port(), "host.example", { ...options(friend), ecdhCurve: "X25519" }), {
      code: "ERR_SSL_SSL/TLS_ALERT_HANDSHAKE_FAILURE",
    });
  });

  test("a handshake that takes longer than handshakeTimeout is aborted", async () => {
    const tls = { cert: host.certFile, key: host.keyFile };
    await using gateway = await LocalGateway.start({
      frontendPolicies: { tls: { handshakeTimeout: "50ms" } },
      binds: [{ port: 0, listeners: [{ protocol: "HTTPS", tls, routes: [] }] }],
    });
    const slow = await RawPeer.connect(gateway.port());
    slow.send(Buffer.from("16030102", "hex"));
    await slow.closed();
    await logged(gateway, { error: "the TLS handshake took too long" });
  });
});

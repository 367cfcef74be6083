import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { type Identity, noOpenssl, TestCa } from "../../helpers/certificates.ts";
import { CHECK, type CheckAnswer, CheckRequest, CheckResponse } from "../../helpers/envoy/auth.ts";
import { proxyTo, TestGateway } from "../../helpers/gateway.ts";
import { GrpcServer } from "../../helpers/grpc-server.ts";
import { LocalGateway } from "../../helpers/local-gateway.ts";
import { type RawMessage, RawPeer, RawUpstream, reply, statusOf, valuesOf } from "../../helpers/raw-peer.ts";
import { EchoServer } from "../tcp/echo-server.ts";
import { get, logged, metric, NO_RESPONSE, tlsConnect } from "../tls/support.ts";

type Question = NonNullable<ReturnType<typeof CheckRequest.decode>["attributes"]>;

const REQUEST = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
const FORBIDDEN = reply("", [], "403 Forbidden");

/** A service that records the requests that it gets. */
async function authorizer(answer: (question: RawMessage) => string | Promise<string>) {
  const questions: RawMessage[] = [];
  const server = await RawUpstream.listen(async (peer) => {
    for (;;) {
      const question = await peer.message();
      questions.push(question);
      peer.send(await answer(question));
    }
  });
  return Object.assign(server, { questions });
}

/** A backend that returns what it got of the request. */
const backend = () =>
  RawUpstream.answering((request) => reply([request.start, ...valuesOf(request, "x-team")].join(" ")));

function asking(port: number, more: object = {}, http: object = {}): { networkExtAuthz: object } {
  return { networkExtAuthz: { host: `127.0.0.1:${port}`, protocol: { http }, ...more } };
}

/** Connects, sends, and returns the first response; undefined if the connection was closed instead. */
async function attempt(port: number, text = REQUEST): Promise<RawMessage | undefined> {
  const client = await RawPeer.connect(port);
  client.send(text);
  try {
    return await client.message();
  } catch (error) {
    if (client.ended === undefined) throw error;
    assert.equal(client.received, "");
    return undefined;
  } finally {
    client.socket.destroy();
  }
}

const statusAt = async (gateway: Pick<TestGateway, "port">): Promise<number | undefined> => {
  const message = await attempt(gateway.port());
  return message && statusOf(message);
};

suite("networkExtAuthz", () => {
  test("a denial stays a denial if its body breaks off, even if failures are tolerated", async () => {
    await using upstream = await backend();
    for (const end of ["reset", "end"] as const) {
      await using service = await RawUpstream.listen(async (peer) => {
        await peer.message();
        peer.send("HTTP/1.1 403 No\r\ncontent-length: 10\r\n\r\nno");
        setImmediate(() => peer[end]());
      });
      const frontendPolicies = asking(service.port, { failureMode: "allow" });
      await using gateway = await LocalGateway.start({ ...proxyTo(`127.0.0.1:${upstream.port}`), frontendPolicies });
      assert.equal(await statusAt(gateway), undefined);
    }
  });

  test("calls the service once per connection; requests see its metadata; rejected connections are closed without a response", async () => {
    let answer = reply("", ["x-team: blue"]);
    await using service = await authorizer(() => answer);
    await using upstream = await backend();
    const http = {
      path: '"/connect?from=" + source.address',
      addRequestHeaders: { "X-Port": "string(source.port)", "x-none": "source.subject" },
      metadata: { team: 'response.headers["x-team"]', none: 'response.headers["x-none"]' },
    };
    const policies = { transformations: { request: { set: { "x-team": "extauthz.team" } } } };
    const routes = [{ policies, backends: [{ host: `127.0.0.1:${upstream.port}` }] }];
    await using gateway = await LocalGateway.start({
      frontendPolicies: asking(service.port, {}, http),
      binds: [{ port: 0, listeners: [{ routes }] }],
    });
    const client = await RawPeer.connect(gateway.port());
    for (const path of ["/a", "/b"]) {
      client.send(`GET ${path} HTTP/1.1\r\nHost: h\r\n\r\n`);
      assert.equal((await client.message()).body, `GET ${path} HTTP/1.1 blue`);
    }
    const [question, ...others] = service.questions;
    assert.equal(others.length, 0);
    assert.equal(question?.start, "GET /connect?from=127.0.0.1 HTTP/1.1");
    assert.deepEqual(valuesOf(question, "x-port"), [String(client.socket.localPort)]);
    assert.deepEqual(valuesOf(question, "x-none"), []);
    assert.deepEqual(valuesOf(question, "host"), [`127.0.0.1:${service.port}`]);
    client.end();

    answer = FORBIDDEN;
    assert.equal(await statusAt(gateway), undefined);
    await logged(gateway, {
      error: "external authorization failed: the service responded with 403, at frontendPolicies.networkExtAuthz",
      reason: "ExtAuth",
    });
    assert.equal(await metric(gateway, "downstream_connections_total", 'protocol="http"'), 2);
    assert.equal(upstream.connections.length, 1);
  });

  test("gRPC: the service gets both addresses, and requests can read its metadata", async () => {
    const asked: Question[] = [];
    let answer: CheckAnswer = { ok_response: {}, dynamic_metadata: { team: "blue" } };
    await using service = await GrpcServer.start({
      [CHECK]: {
        unary(message) {
          asked.push(CheckRequest.decode(message).attributes ?? {});
          return CheckResponse.encode(answer);
        },
      },
    });
    await using upstream = await backend();
    const policies = { transformations: { request: { set: { "x-team": "extauthz.team" } } } };
    const grpc = { context: { gate: "main" }, metadata: { from: "source.address" } };
    await using gateway = await LocalGateway.start({
      frontendPolicies: { networkExtAuthz: { host: `127.0.0.1:${service.port}`, protocol: { grpc } } },
      binds: [{ port: 0, listeners: [{ routes: [{ policies, backends: [{ host: `127.0.0.1:${upstream.port}` }] }] }] }],
    });
    assert.equal((await attempt(gateway.port()))?.body, "GET / HTTP/1.1 blue");
    const [question] = asked;
    assert.equal(question?.source?.address?.socket_address?.address, "127.0.0.1");
    assert.equal(question?.destination?.address?.socket_address?.port_value, gateway.port());
    assert.deepEqual({ ...question?.context_extensions }, { gate: "main" });
    assert.equal(question?.request?.http, undefined);
    assert.match(JSON.stringify(question?.metadata_context), /127\.0\.0\.1/);
    answer = { status: { code: 7 } };
    assert.equal(await statusAt(gateway), undefined);
    const error = "external authorization failed: the service denied with 403, at frontendPolicies.networkExtAuthz";
    await logged(gateway, { error, reason: "ExtAuth" });
  });

  test("HTTP: method, Host and body of the callout; a failure mode with a status closes the connection like deny", async () => {
    await using service = await authorizer(() => reply(""));
    await using upstream = await backend();
    const http = {
      body: '"from=" + source.address',
      addRequestHeaders: { ":method": '"POST"', ":path": '"/connect"', ":authority": '"gate.example"' },
      redirect: '"https://login.example"',
      includeResponseHeaders: ["x-user"],
    };
    const more = { includeRequestHeaders: ["x"], includeRequestBody: {}, failureMode: { denyWithStatus: 503 } };
    const config = (port: number) => ({
      frontendPolicies: asking(port, more, http),
      ...proxyTo(`127.0.0.1:${upstream.port}`),
    });
    await using gateway = await LocalGateway.start(config(service.port));
    assert.equal(await statusAt(gateway), 200);
    const [question] = service.questions;
    assert.deepEqual([question?.start, question?.body], ["POST /connect HTTP/1.1", "from=127.0.0.1"]);
    assert.deepEqual(question && valuesOf(question, "host"), ["gate.example"]);
    await gateway.reconfigure(config(1));
    assert.equal(await statusAt(gateway), undefined);
  });

  test("bytes that the client sends meanwhile are not read, and none is lost", async () => {
    const verdict = Promise.withResolvers<string>();
    await using service = await authorizer(() => verdict.promise);
    await using upstream = await backend();
    await using gateway = await LocalGateway.start({
      frontendPolicies: asking(service.port, { timeout: "1m" }),
      ...proxyTo(`127.0.0.1:${upstream.port}`),
    });
    const client = await RawPeer.connect(gateway.port());
    const body = "x".repeat(300_000);
    client.send(
      `GET /1 HTTP/1.1\r\nHost: h\r\n\r\nPOST /2 HTTP/1.1\r\nHost: h\r\nContent-Length: ${body.length}\r\n\r\n`,
    );
    client.send(`${body}GET /3 HTTP/1.1\r\nHost: h\r\n\r\n`);
    await (await service.connection()).until(() => service.questions.length === 1, "the question");
    assert.equal(upstream.connections.length, 0);
    verdict.resolve(reply(""));
    for (const start of ["GET /1", "POST /2", "GET /3"])
      assert.equal((await client.message()).body, `${start} HTTP/1.1`);
    client.end();
  });

  test("when the client leaves, the callout is cancelled", async () => {
    await using service = await authorizer(() => new Promise(() => {}));
    await using gateway = await LocalGateway.start({
      frontendPolicies: asking(service.port, { timeout: "1m" }),
      ...proxyTo("127.0.0.1:1"),
    });
    for (const [i, leave] of (["end", "reset"] as const).entries()) {
      const client = await RawPeer.connect(gateway.port());
      client.send(REQUEST);
      const asked = await service.connection(i);
      await asked.until(() => service.questions.length === i + 1, "the question");
      client[leave]();
      await asked.closed();
    }
    await logged(gateway, { error: "the connection closed before it was authorized" });
  });

  test("an unreachable or slow service: the connection is rejected unless failureMode is allow", async () => {
    await using silent = await authorizer(() => new Promise(() => {}));
    await using upstream = await backend();
    const start = (port: number, more: object, http: object = {}): Promise<LocalGateway> =>
      LocalGateway.start({
        frontendPolicies: asking(port, { timeout: "50ms", ...more }, http),
        ...proxyTo(`127.0.0.1:${upstream.port}`),
      });
    await using denying = await start(silent.port, {});
    assert.equal(await statusAt(denying), undefined);
    const error = "external authorization failed: no response in time, at frontendPolicies.networkExtAuthz";
    await logged(denying, { error, reason: "ExtAuth" });
    const config = (more: object, http: object = {}): object => ({
      frontendPolicies: asking(1, more, http),
      ...proxyTo(`127.0.0.1:${upstream.port}`),
    });
    await denying.reconfigure(config({ failureMode: "allow" }));
    for (let i = 0; i < 5; i++) assert.equal(await statusAt(denying), 200);
    const served = () => denying.lines.filter((line) => line["http.status"] === 200).length;
    await denying.until(() => served() === 5, "the access log");
    // The log says so, but not once for each client.
    const warnings = denying.lines.filter(({ level }) => level === "warn");
    assert.deepEqual(
      warnings.map(({ message }) => message),
      ["networkExtAuthz has failed; connections are allowed"],
    );
    assert.match(String(warnings[0]?.error), /ECONNREFUSED/);
    // An expression that fails is not a failure of the service: clients could cause it.
    await denying.reconfigure(config({ failureMode: "allow" }, { path: '"no path"' }));
    assert.equal(await statusAt(denying), undefined);
  });

  test("decisions are cached by key, denials with statuses other than 401 and 403 are not", async () => {
    let status = "200 OK";
    await using service = await authorizer(() => reply("", ["x-team: red"], status));
    await using upstream = await backend();
    const config = (ttl: string): object => ({
      frontendPolicies: asking(service.port, { cache: { key: ["source.address"], ttl } }),
      ...proxyTo(`127.0.0.1:${upstream.port}`),
    });
    await using gateway = await LocalGateway.start(config("1h"));
    const asked = async (): Promise<readonly unknown[]> => {
      const asked = service.questions.length;
      return [await statusAt(gateway), service.questions.length - asked];
    };
    assert.deepEqual(
      [await asked(), await asked()],
      [
        [200, 1],
        [200, 0],
      ],
    );
    status = "403 Forbidden";
    await gateway.reconfigure(config("2h"));
    assert.deepEqual(
      [await asked(), await asked()],
      [
        [undefined, 1],
        [undefined, 0],
      ],
    );
    status = "500 Oops";
    await gateway.reconfigure(config("3h"));
    assert.deepEqual(
      [await asked(), await asked()],
      [
        [undefined, 1],
        [undefined, 1],
      ],
    );
  });

  test("connections that networkAuthorization rejects cause no callout; the address is that of the PROXY header", async () => {
    await using service = await authorizer((question) => (question.start.includes("10.0.0.2") ? FORBIDDEN : reply("")));
    await using upstream = await backend();
    await using gateway = await LocalGateway.start({
      frontendPolicies: {
        ...asking(service.port, {}, { path: '"/" + source.address' }),
        networkAuthorization: { rules: [{ deny: 'source.address == "10.0.0.1"' }] },
        proxyProtocol: { version: "v1" },
      },
      ...proxyTo(`127.0.0.1:${upstream.port}`),
    });
    const from = (address: string) =>
      attempt(gateway.port(), `PROXY TCP4 ${address} 198.51.100.2 4000 443\r\n${REQUEST}`);
    assert.equal(await from("10.0.0.1"), undefined);
    const error =
      'authorization failed: deny rules[0] is true (source.address: "10.0.0.1"), at frontendPolicies.networkAuthorization.rules[0]';
    await logged(gateway, { error, reason: "Authorization", "src.addr": "10.0.0.1:4000" });
    assert.equal(await from("10.0.0.2"), undefined);
    assert.equal((await from("10.0.0.3"))?.body, "GET / HTTP/1.1");
    assert.deepEqual(
      service.questions.map(({ start }) => start.split(" ")[1]),
      ["/10.0.0.2", "/10.0.0.3"],
    );
  });

  test("TCP: bytes and a FIN that arrive before the decision reach the backend", async () => {
    const verdict = Promise.withResolvers<string>();
    await using service = await authorizer(() => verdict.promise);
    await using upstream = await RawUpstream.listen();
    const tcpRoutes = [{ backends: [{ host: `127.0.0.1:${upstream.port}` }] }];
    await using gateway = await LocalGateway.start({
      frontendPolicies: asking(service.port, { timeout: "1m" }),
      binds: [{ port: 0, listeners: [{ protocol: "TCP", tcpRoutes }] }],
    });
    const client = await RawPeer.connect(gateway.port());
    client.send("early");
    client.end();
    await (await service.connection()).until(() => service.questions.length === 1, "the question");
    assert.equal(upstream.connections.length, 0);
    verdict.resolve(reply(""));
    const peer = await upstream.connection();
    assert.equal(await peer.closed(), "end");
    assert.equal(peer.received, "early");
    peer.send("late");
    peer.end();
    await client.take("late");
  });

  test("a tunnel and the connection inside it are checked separately", async () => {
    await using service = await authorizer((question) => (question.start.includes("/5432") ? FORBIDDEN : reply("")));
    await using echo = await EchoServer.start("");
    const tcpRoutes = [{ backends: [{ host: echo.address }] }];
    await using gateway = await LocalGateway.start({
      frontendPolicies: asking(service.port, {}, { path: '"/" + string(destination.port)' }),
      binds: [
        { port: 0, tunnelProtocol: "connect", listeners: [{ routes: [] }] },
        { mode: "internal", listeners: [{ protocol: "TCP", tcpRoutes }] },
      ],
    });
    const open = async (authority: string): Promise<RawPeer> => {
      const peer = await RawPeer.connect(gateway.port());
      peer.send(`CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n\r\nping`);
      assert.equal(statusOf(await peer.message(true)), 200);
      return peer;
    };
    const allowed = await open("10.0.0.1:7");
    await allowed.take("ping");
    allowed.end();
    const refused = await open("10.0.0.1:5432");
    await refused.closed();
    assert.equal(refused.received, "");
    const outside = `/${gateway.port()}`;
    const asked = service.questions.map(({ start }) => start.split(" ")[1]);
    assert.deepEqual(asked, [outside, "/7", outside, "/5432"]);
  });

  test("the dump shows it with secrets redacted", async () => {
    await using gateway = await TestGateway.start({
      frontendPolicies: asking(9, {}, { addRequestHeaders: { authorization: '"Bearer s"', "x-a": "source.address" } }),
      ...proxyTo("127.0.0.1:1"),
    });
    const dump = (await (await fetch(`${gateway.url("admin")}/config_dump`)).json()) as { policies: { key: string }[] };
    const entry = dump.policies.find(({ key }) => key === "frontend/networkExtAuthz");
    assert.deepEqual((entry as { policy?: unknown } | undefined)?.policy, {
      frontend: {
        networkExtAuthz: {
          target: { type: "static", host: "127.0.0.1", port: 9 },
          protocol: {
            http: { addRequestHeaders: { authorization: "<redacted>", "x-a": "source.address" }, metadata: {} },
          },
          failureMode: "deny",
          timeout: "2s",
        },
      },
    });
  });
});

suite("networkExtAuthz and TLS", { skip: noOpenssl }, () => {
  let ca: TestCa;
  let host: Identity;
  let friend: Identity;
  let stranger: Identity;
  before(() => {
    ca = new TestCa();
    host = ca.issue("host.example");
    friend = ca.issue("friend.example");
    stranger = ca.issue("stranger.example");
  });
  after(() => ca[Symbol.dispose]());

  const path = '"/" + destination.hostname + "/" + string(default(source.subjectCn, "nobody"))';
  const judge = (question: RawMessage): string =>
    /\/(host\.example\/friend\.example|open\.example\/nobody) /.test(question.start) ? reply("") : FORBIDDEN;

  test("HTTPS: after the handshake, with the client's certificate", async () => {
    await using service = await authorizer(judge);
    await using upstream = await backend();
    const tls = { cert: host.certFile, key: host.keyFile, root: ca.certFile };
    const routes = [{ backends: [{ host: `127.0.0.1:${upstream.port}` }] }];
    await using gateway = await LocalGateway.start({
      frontendPolicies: asking(service.port, {}, { path }),
      binds: [{ port: 0, listeners: [{ protocol: "HTTPS", tls, routes }] }],
    });
    const options = ({ cert, key }: Identity): object => ({ ca: ca.cert, cert, key });
    assert.equal((await get(gateway.port(), "host.example", options(friend))).body, "GET / HTTP/1.1");
    await assert.rejects(get(gateway.port(), "host.example", options(stranger)), NO_RESPONSE);
    await logged(gateway, { reason: "ExtAuth" });
    assert.equal(await metric(gateway, "downstream_connections_total", 'protocol="https"'), 2);
  });

  test("terminated TLS, and TLS passthrough", async () => {
    await using service = await authorizer(judge);
    await using echo = await EchoServer.start("");
    await using upstream = await LocalGateway.start({
      binds: [
        {
          port: 0,
          listeners: [
            {
              protocol: "TLS",
              tls: { cert: host.certFile, key: host.keyFile },
              tcpRoutes: [{ backends: [{ host: echo.address }] }],
            },
          ],
        },
      ],
    });
    const ended = {
      name: "ended",
      protocol: "TLS",
      hostname: "host.example",
      tls: { cert: host.certFile, key: host.keyFile, root: ca.certFile },
      tcpRoutes: [{ backends: [{ host: echo.address }] }],
    };
    const passing = {
      name: "passing",
      protocol: "TLS",
      tcpRoutes: [{ backends: [{ host: `127.0.0.1:${upstream.port()}` }] }],
    };
    await using gateway = await LocalGateway.start({
      frontendPolicies: asking(service.port, {}, { path }),
      binds: [{ port: 0, listeners: [ended, passing] }],
    });
    const connect = (servername: string, { cert, key }: Identity) =>
      tlsConnect(gateway.port(), { servername, ca: ca.cert, cert, key, checkServerIdentity: () => undefined });
    for (const servername of ["host.example", "open.example"]) {
      const { peer } = await connect(servername, friend);
      peer.send("ping");
      await peer.take("ping");
      peer.end();
      await peer.closed();
    }
    const { peer } = await connect("host.example", stranger);
    await peer.closed();
    await assert.rejects(connect("closed.example", friend), { code: "ECONNRESET" });
    await logged(gateway, { reason: "ExtAuth" });
  });
});

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { CLIENT_HELLO } from "../../helpers/client-hello.ts";
import { TestGateway } from "../../helpers/gateway.ts";
import { LocalGateway } from "../../helpers/local-gateway.ts";
import { RawPeer, RawUpstream, statusOf } from "../../helpers/raw-peer.ts";
import { UdpPeer } from "../../helpers/udp-peer.ts";

const folder = mkdtempSync(join(tmpdir(), "ip-access-"));
const file = join(folder, "denied.txt");
const LIST = ["# from a feed", "203.0.113.0/24", "", "2001:db8:bad::/48  # a network"];
/** A list for the ports below. */
const homes = join(folder, "homes.txt");
let gateway: TestGateway;

before(async () => {
  writeFileSync(file, LIST.join("\n"));
  writeFileSync(homes, "192.0.2.0/24\n203.0.113.0/24");
  const at = (pathPrefix: string, ipAccess: object) => ({
    matches: [{ path: { pathPrefix } }],
    policies: { ipAccess, directResponse: { status: 200 } },
  });
  gateway = await TestGateway.start({
    frontendPolicies: { http: { forwarded: { trustedProxies: ["127.0.0.1", "10.0.0.0/8"] } } },
    binds: [
      {
        port: 0,
        listeners: [
          {
            policies: { ipAccess: { deny: [{ file }] } },
            routes: [
              at("/", { deny: ["192.0.2.66"] }),
              at("/some", { allow: ["192.0.2.0/24", "203.0.113.1"], deny: ["192.0.2.9"] }),
            ],
          },
        ],
      },
    ],
    policies: [
      {
        name: { name: "all" },
        target: { gateway: { gatewayName: "default" } },
        policy: { ipAccess: { allow: ["0.0.0.0/0"], deny: ["192.0.2.7"] } },
      },
    ],
  });
});
after(async () => {
  await gateway.stop();
  rmSync(folder, { recursive: true });
});

/** The status for a client that the proxy at 127.0.0.1 reports. */
async function statusFor(reported: string, path = "/"): Promise<number> {
  const headers = { "x-forwarded-for": reported };
  return (await fetch(`http://127.0.0.1:${gateway.port()}${path}`, { headers })).status;
}

test("deny beats allow, of every level", async () => {
  for (const [address, path, status] of [
    ["192.0.2.1", "/", 200],
    ["192.0.2.66", "/", 403],
    ["192.0.2.7", "/", 403],
    ["203.0.113.1", "/", 403],
    ["2001:db8::1", "/", 403],
    ["192.0.2.1", "/some", 200],
    ["192.0.2.9", "/some", 403],
    ["192.0.2.7", "/some", 403],
    ["203.0.113.1", "/some", 403],
    ["198.51.100.1", "/some", 403],
  ] as const)
    assert.equal(await statusFor(address, path), status, `${address} ${path}`);
  await gateway.until(() => gateway.lines.filter((line) => line["http.status"] === 403).length === 8, "the access log");
  const errors = gateway.lines.flatMap(({ error }) => (typeof error === "string" ? [error] : []));
  assert.match(errors[1] ?? "", /^authorization failed: 192\.0\.2\.7 is in deny \(192\.0\.2\.7\), at /);
  assert.match(
    errors[2] ?? "",
    /203\.0\.113\.1 is in deny \(203\.0\.113\.0\/24\), at binds\[0\]\.listeners\[0\]\.policies\.ipAccess/,
  );
  assert.match(errors.at(-1) ?? "", /198\.51\.100\.1 is not in allow/);
});

test("the client is the last address that is not a trusted proxy", async () => {
  for (const [reported, status] of [
    ["203.0.113.1, 192.0.2.1", 200],
    ["192.0.2.1, 203.0.113.1, 10.1.2.3", 403],
    ["192.0.2.1:4711", 200],
    ["[2001:db8:bad::1]:80", 403],
    ["unknown", 403],
  ] as const)
    assert.equal(await statusFor(reported), status, reported);
  const told = (): boolean =>
    gateway.lines.some(({ error }) =>
      String(error).includes('"unknown", as a trusted proxy reports the client, is not an IP address'),
    );
  await gateway.until(told, "the reason of the last response");
});

test("the address in a PROXY header is the client's, whatever the client claims", async () => {
  for (const mode of ["replace", "off"]) {
    await using local = await LocalGateway.start({
      frontendPolicies: {
        http: { forwarded: { mode, trustedProxies: ["127.0.0.1", "10.0.0.0/8"] } },
        proxyProtocol: { version: "v1", mode: "strict" },
      },
      binds: [
        {
          port: 0,
          listeners: [
            { routes: [{ policies: { ipAccess: { deny: ["203.0.113.1"] }, directResponse: { status: 200 } } }] },
          ],
        },
      ],
    });
    for (const [peer, reported, status] of [
      ["203.0.113.1", "192.0.2.1", 403],
      ["192.0.2.1", "203.0.113.1", 200],
      ["10.1.2.3", "192.0.2.1, 203.0.113.1", 403],
    ] as const) {
      const start = `PROXY TCP4 ${peer} 127.0.0.1 4000 80\r\nGET / HTTP/1.1\r\nHost: a\r\n`;
      const response = await RawPeer.ask(local.port(), `${start}X-Forwarded-For: ${reported}\r\n\r\n`);
      assert.equal(statusOf(response), status, `${mode}, ${peer} reports ${reported}`);
    }
  }
});

test("a file is followed, and a mistake in it leaves the former list", async () => {
  const messages = (begin: string): string[] =>
    gateway.lines.map(({ message }) => String(message)).filter((message) => message.startsWith(begin));
  writeFileSync(file, "198.51.100.0/24\n");
  await gateway.until(() => messages("configuration reloaded").length > 0, "the new list");
  assert.deepEqual([await statusFor("198.51.100.1"), await statusFor("203.0.113.1")], [403, 200]);
  writeFileSync(file, "192.0.2.0/24\n\n198.51.100.256\n");
  await gateway.until(() => messages("Failed to reload").length > 0, "the rejection");
  assert.match(
    messages("Failed to reload").join(),
    /ipAccess\.deny\[0\].*line 3: "198\.51\.100\.256" is not an IP address/s,
  );
  assert.deepEqual([await statusFor("198.51.100.1"), await statusFor("192.0.2.1")], [403, 200]);
});

/** Clients by what their PROXY header says. */
const DENIED = "203.0.113.1";
const FOREIGN = "198.51.100.1";
const HOME = "192.0.2.1";

/** A port whose listener has lists of its own, which is behind a load balancer. */
function portOf(protocol: "TCP" | "TLS" | "HTTP", listener: object): Promise<LocalGateway> {
  const ipAccess = { allow: [{ file: homes }] };
  return LocalGateway.start({
    frontendPolicies: { proxyProtocol: { version: "v1", mode: "strict" }, ipAccess: { deny: ["203.0.113.0/24"] } },
    binds: [{ port: 0, listeners: [{ protocol, policies: { ipAccess }, ...listener }] }],
  });
}

async function arrive(gateway: LocalGateway, address: string, bytes: Buffer): Promise<RawPeer> {
  const client = await RawPeer.connect(gateway.port());
  client.send(Buffer.concat([Buffer.from(`PROXY TCP4 ${address} 127.0.0.1 4000 80\r\n`), bytes]));
  return client;
}

for (const protocol of ["TCP", "TLS"] as const)
  test(`${protocol}: connections are closed by the address, of the port's lists before anything else is read`, async () => {
    await using upstream = await RawUpstream.listen(async (peer) => peer.send("welcome"));
    await using local = await portOf(protocol, { tcpRoutes: [{ backends: [{ host: `127.0.0.1:${upstream.port}` }] }] });
    // The name in the ClientHello says which listener it is for.
    const first = protocol === "TLS" ? CLIENT_HELLO : Buffer.from("hello");
    const rejected = async (address: string, bytes: Buffer, why: RegExp): Promise<void> => {
      const before = local.lines.length;
      const client = await arrive(local, address, bytes);
      await client.closed();
      assert.equal(client.received, "");
      const [line, ...others] = local.lines.slice(before);
      assert.equal(others.length, 0);
      assert.match(String(line?.error), why);
      assert.equal(line?.reason, "Authorization");
    };
    await rejected(
      DENIED,
      Buffer.of(),
      /203\.0\.113\.1 is in deny \(203\.0\.113\.0\/24\), at frontendPolicies\.ipAccess:?/,
    );
    await rejected(
      FOREIGN,
      first,
      /198\.51\.100\.1 is not in allow, at binds\[0\]\.listeners\[0\]\.policies\.ipAccess/,
    );
    const admitted = await arrive(local, HOME, first);
    assert.equal(await admitted.take("welcome"), "welcome");
    assert.equal(upstream.connections.length, 1);
    const events = await local.trace(async () => (await arrive(local, DENIED, Buffer.of())).closed());
    assert.deepEqual(
      events.map(({ type }) => type),
      ["requestStarted", "requestSnapshot", "requestFinished"],
    );
    const counted = /^tracegate_downstream_denied_connections_total\{.*policy="ipAccess"\} (\d+)$/m.exec(
      local.metricsText(),
    );
    assert.equal(counted?.[1], "3");
    for (const peer of [admitted, ...upstream.connections]) peer.socket.destroy();
  });

test("HTTP: the port's lists close connections, and those of the listener answer requests", async () => {
  await using local = await portOf("HTTP", { routes: [{ policies: { directResponse: { status: 200 } } }] });
  const closed = await arrive(local, DENIED, Buffer.of());
  await closed.closed();
  assert.equal(closed.received, "");
  for (const [address, status] of [
    [FOREIGN, 403],
    [HOME, 200],
  ] as const) {
    const client = await arrive(local, address, Buffer.from("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
    assert.equal(statusOf(await client.message()), status);
    client.socket.destroy();
  }
});

test("datagrams of clients that may not connect are dropped", async () => {
  await using echo = await UdpPeer.open((text) => text);
  const config = (ofPort: object, ofListener: object) => ({
    frontendPolicies: ofPort,
    binds: [
      {
        port: 0,
        listeners: [
          { protocol: "UDP", policies: ofListener, tcpRoutes: [{ backends: [{ host: `127.0.0.1:${echo.port}` }] }] },
        ],
      },
    ],
  });
  const ipAccess = { deny: ["127.0.0.0/8"] };
  await using local = await LocalGateway.start(config({ ipAccess }, {}));
  const dropped = (count: number) =>
    local.until(
      () => new RegExp(`reason="authorization"} ${count}$`, "m").test(local.metricsText()),
      `${count} dropped`,
    );
  await using client = await UdpPeer.open();
  client.send("one", local.port());
  await dropped(1);
  await local.reconfigure(config({}, { ipAccess }));
  client.send("two", local.port());
  await dropped(2);
  await local.reconfigure(config({}, { ipAccess: { allow: ["127.0.0.0/8"] } }));
  client.send("three", local.port());
  assert.equal((await client.next()).text, "three");
  assert.match(String(local.lines.find(({ message }) => message === "rejected")?.error), /127\.0\.0\.1 is in deny/);
});

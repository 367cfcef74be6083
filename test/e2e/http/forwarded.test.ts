import assert from "node:assert/strict";
import { suite, test } from "node:test";
import type { Forwarded, RequestId } from "../../../src/ir/ir.ts";
import { type PlaneOptions, TestPlane } from "../../helpers/data-plane.ts";
import { TestGateway } from "../../helpers/gateway.ts";
import { type RawMessage, RawPeer, RawUpstream, reply, valuesOf } from "../../helpers/raw-peer.ts";
import { traceOf } from "../trace/support.ts";

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const NAMES = ["forwarded", "x-forwarded-for", "x-forwarded-proto", "x-forwarded-host"] as const;
/** Fields that a client may forge. */
const CLAIMS = [
  "X-Forwarded-For: 192.0.2.1",
  "x-forwarded-for: 192.0.2.2",
  "X-Forwarded-Proto: https",
  "X-Forwarded-Host: evil.example",
  "X-Forwarded-Port: 8443",
  "X-Forwarded-Prefix: /evil",
  "Forwarded: for=192.0.2.1",
  "X-Forwarded-Client-Cert: Subject=admin",
];

/** The request that a backend gets for one with `fields`. */
async function received(options: PlaneOptions, fields: readonly string[], before = ""): Promise<RawMessage> {
  const messages: RawMessage[] = [];
  await using upstream = await RawUpstream.answering((message) => {
    messages.push(message);
    return reply("");
  });
  await using plane = await TestPlane.start(upstream.port, options);
  const client = await RawPeer.connect(plane.port);
  client.send(`${before}${["GET / HTTP/1.1", "Host: Shop.example:8080", ...fields, "", ""].join("\r\n")}`);
  await client.message();
  client.end();
  return messages[0] ?? assert.fail("no request");
}

function forwarded(mode: Forwarded["mode"], ...trustedProxies: string[]): PlaneOptions {
  return { frontend: { forwarded: { mode, trustedProxies } } };
}

suite("forwarded", () => {
  const OWN = [[], ["127.0.0.1"], ["http"], ["Shop.example:8080"]];
  const CHAIN = ["192.0.2.1, 192.0.2.2, 127.0.0.1"];
  const KEPT = [["for=192.0.2.1"], CHAIN, ["https"], ["evil.example"]];
  for (const [what, options, expected] of [
    ["replace", forwarded("replace"), OWN],
    ["replace, from a proxy that is not trusted", forwarded("replace", "127.0.0.2", "10.0.0.0/8", "::1"), OWN],
    ["replace, from a trusted proxy", forwarded("replace", "127.0.0.0/8"), KEPT],
    ["append", forwarded("append"), [[], CHAIN, ["http"], ["Shop.example:8080"]]],
    ["append, from a trusted proxy", forwarded("append", "127.0.0.1"), KEPT],
    ["off", forwarded("off"), [["for=192.0.2.1"], ["192.0.2.1", "192.0.2.2"], ["https"], ["evil.example"]]],
  ] as const)
    test(`${what}: what the backend gets from a client that sends every field`, async () => {
      const message = await received(options, CLAIMS);
      assert.deepEqual(
        NAMES.map((name) => valuesOf(message, name)),
        expected,
      );
      assert.deepEqual(valuesOf(message, "x-forwarded-client-cert"), []);
      const passed = expected === OWN || what === "append" ? [] : ["8443", "/evil"];
      assert.deepEqual([...valuesOf(message, "x-forwarded-port"), ...valuesOf(message, "x-forwarded-prefix")], passed);
    });

  test("a field whose name only begins with X-Forwarded- is dropped too", async () => {
    assert.deepEqual(
      valuesOf(await received(forwarded("replace"), ["X-Forwarded-Prefix: /evil"]), "x-forwarded-prefix"),
      [],
    );
  });

  test("a client that sends none of the fields: the gateway writes them, unless it is off", async () => {
    const plain = async (options: PlaneOptions): Promise<string[][]> => {
      const message = await received(options, []);
      return NAMES.map((name) => valuesOf(message, name));
    };
    for (const options of [forwarded("replace"), forwarded("append"), forwarded("replace", "127.0.0.1")])
      assert.deepEqual(await plain(options), OWN);
    assert.deepEqual(await plain(forwarded("off")), [[], [], [], []]);
  });

  test("without Host there is no X-Forwarded-Host, even if the client sends one", async () => {
    for (const fields of ["", "X-Forwarded-Host: evil.example\r\n"]) {
      const seen: RawMessage[] = [];
      await using upstream = await RawUpstream.answering((message) => {
        seen.push(message);
        return reply("");
      });
      await using plane = await TestPlane.start(upstream.port, forwarded("append"));
      const client = await RawPeer.connect(plane.port);
      client.send(`GET / HTTP/1.0\r\n${fields}\r\n`);
      await client.message();
      assert.deepEqual(valuesOf(seen[0] ?? assert.fail(), "x-forwarded-host"), []);
      assert.deepEqual(valuesOf(seen[0] ?? assert.fail(), "x-forwarded-for"), ["127.0.0.1"]);
    }
  });

  test("the address in a PROXY header is the client's; trustedProxies is compared with the TCP peer", async () => {
    const proxyProtocol = { version: "v1", mode: "strict" } as const;
    const before = "PROXY TCP4 10.1.2.3 127.0.0.1 4000 80\r\n";
    const one = await received(
      { frontend: { ...forwarded("replace", "10.0.0.0/8").frontend, proxyProtocol } },
      CLAIMS,
      before,
    );
    assert.deepEqual(valuesOf(one, "x-forwarded-for"), ["10.1.2.3"]);
    const two = await received(
      { frontend: { ...forwarded("replace", "127.0.0.1").frontend, proxyProtocol } },
      CLAIMS,
      before,
    );
    assert.deepEqual(valuesOf(two, "x-forwarded-for"), ["192.0.2.1, 192.0.2.2, 10.1.2.3"]);
  });
});

suite("requestId", () => {
  const id = (mode: RequestId["mode"], header = "x-request-id", ...trustedProxies: string[]): PlaneOptions => ({
    frontend: { requestId: { header, mode }, forwarded: { mode: "replace", trustedProxies } },
  });

  test("preserve: the client's id if it is well-formed and the client is trusted, else a new one", async () => {
    const sent = async (options: PlaneOptions, ...values: string[]): Promise<string[]> =>
      valuesOf(
        await received(
          options,
          values.map((value) => `X-Request-ID: ${value}`),
        ),
        "x-request-id",
      );
    assert.deepEqual(await sent(id("preserve"), "abc-1"), ["abc-1"]);
    assert.deepEqual(await sent(id("preserve", "x-request-id", "127.0.0.1"), "abc-1"), ["abc-1"]);
    for (const values of [
      await sent(id("preserve")),
      await sent(id("preserve"), "a b"),
      await sent(id("preserve"), ""),
    ])
      assert.match(values.join(), UUID);
    assert.match((await sent(id("preserve"), "x".repeat(129))).join(), UUID);
    assert.match((await sent(id("preserve"), "a", "b")).join(), UUID);
    assert.match((await sent(id("preserve", "x-request-id", "10.0.0.1"), "abc-1")).join(), UUID);
    assert.match((await sent(id("generate"), "abc-1")).join(), UUID);
    assert.deepEqual(await sent(id("off"), "a b", "c"), ["a b", "c"]);
    assert.deepEqual(await sent(id("off")), []);
    const other = await received(id("preserve", "x-correlation"), ["X-Correlation: c1", "X-Request-ID: r1"]);
    assert.deepEqual([...valuesOf(other, "x-correlation"), ...valuesOf(other, "x-request-id")], ["c1", "r1"]);
  });
});

test("by default all fields are written and the log and trace have the id; redirects use Host", async () => {
  const messages: RawMessage[] = [];
  await using upstream = await RawUpstream.answering((message) => {
    messages.push(message);
    return reply("");
  });
  const routes = [
    { matches: [{ path: { exact: "/to" } }], policies: { requestRedirect: { path: { full: "/new" } } } },
    { backends: [{ host: `127.0.0.1:${upstream.port}` }] },
  ];
  await using gateway = await TestGateway.start({ binds: [{ port: 0, listeners: [{ routes }] }] });
  const client = await RawPeer.connect(gateway.port());
  const request = ["Host: a.test", ...CLAIMS, "", ""].join("\r\n");
  const events = await traceOf(gateway, async () => {
    client.send(`GET / HTTP/1.1\r\n${request}`);
    await client.message();
  });
  const [message = assert.fail("no request")] = messages;
  assert.deepEqual(message.fields.slice(1).sort(), [
    "x-forwarded-for: 127.0.0.1",
    "x-forwarded-host: a.test",
    "x-forwarded-proto: http",
    `x-request-id: ${valuesOf(message, "x-request-id")[0]}`,
  ]);
  const [sent = ""] = valuesOf(message, "x-request-id");
  assert.match(sent, UUID);
  assert.ok(events.some((each) => each.message.type === "requestStarted" && each.message.requestId === sent));
  await gateway.until(() => gateway.lines.some((line) => line["request.id"] === sent), "the line of the log");
  client.send(`GET /to HTTP/1.1\r\n${request}`);
  assert.deepEqual(valuesOf(await client.message(), "location"), ["http://a.test/new"]);
});

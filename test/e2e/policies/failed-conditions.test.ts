import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { TestGateway } from "../../helpers/gateway.ts";
import { LocalGateway } from "../../helpers/local-gateway.ts";
import { RawPeer, statusOf } from "../../helpers/raw-peer.ts";
import { call, traceOf, Upstream } from "../trace/support.ts";

/** Rules by the path of their route. */
const RULES: Readonly<Record<string, readonly unknown[]>> = {
  text: [{ deny: 'string(request.body).contains("drop")' }],
  bytes: [{ deny: 'request.body.contains("drop")' }],
  json: [{ deny: 'json(request.body).user == "x"' }],
  pairs: [{ deny: 'request.headers["x"].split(",").all(a, request.headers["y"].split(",").all(b, a != b))' }],
  items: [{ deny: 'request.headers["x"].split(",").exists(h, h == "evil")' }],
  path: [{ deny: 'url.decode(request.path).contains("evil")' }],
  query: [{ deny: 'url.decode(request.pathAndQuery).contains("evil")' }],
  required: [{ require: "!json(request.body).blocked" }],
  allowed: [{ allow: "!json(request.body).blocked" }],
  unset: [{ deny: "!has(jwt.sub)" }],
  null: [{ deny: "jwt == null" }],
  claim: [{ deny: 'jwt.sub == "banned"' }],
  many: Array.from({ length: 40 }, (_, i) => ({
    deny: `string(request.body).lowerAscii().replace("a", "${i}").contains("drop")`,
  })),
};

const HOUR = { tokensPerFill: 0, fillInterval: "1h" };
const ODD = 'json(request.headers["x"]).odd == true';

/** Policies with a condition. */
const CHOICES: Readonly<Record<string, object>> = {
  limit: { localRateLimit: { conditional: [{ condition: ODD, maxTokens: 0, ...HOUR }] } },
  service: { extAuthz: { conditional: [{ condition: ODD, host: "127.0.0.1:1" }] } },
  processor: { extProc: { conditional: [{ condition: ODD, host: "127.0.0.1:1" }] } },
  remote: {
    remoteRateLimit: {
      conditional: [
        { condition: ODD, host: "127.0.0.1:1", domain: "a", descriptors: [{ entries: [{ key: "a", value: "'b'" }] }] },
      ],
    },
  },
  answer: { directResponse: { conditional: [{ condition: ODD, status: 451 }] } },
  change: { transformations: { conditional: [{ condition: ODD, request: { set: { "x-odd": "'yes'" } } }] } },
  counted: {
    remoteRateLimit: {
      host: "127.0.0.1:1",
      domain: "a",
      descriptors: [
        { entries: [{ key: "odd", value: 'json(request.headers["x"]).odd' }] },
        { entries: [{ key: "y", value: 'request.headers["y"]' }] },
      ],
    },
  },
  retried: { retry: { attempts: 3, codes: [503], precondition: ODD } },
};

let upstream: Upstream;
let gateway: TestGateway;

before(async () => {
  upstream = await Upstream.start();
  const routes = Object.entries(RULES).map(([name, rules]) => ({
    name,
    matches: [{ path: { pathPrefix: `/${name}` } }],
    policies: { authorization: { rules } },
    backends: [{ host: upstream.address }],
  }));
  const choices = Object.entries(CHOICES).map(([name, policies]) => ({
    name,
    matches: [{ path: { pathPrefix: `/${name}` } }],
    policies,
    backends: [{ host: upstream.address }],
  }));
  gateway = await TestGateway.start({
    frontendPolicies: {
      accessLog: { filter: 'json(request.headers["x"]).logged', add: { shown: 'request.headers["x"].upperAscii()' } },
    },
    binds: [{ port: 0, listeners: [{ routes: [...routes, ...choices] }] }],
  });
});
after(async () => {
  await gateway.stop();
  await upstream.close();
});

async function post(path: string, body: string | Buffer, headers: Record<string, string> = {}): Promise<number> {
  return (await call(gateway.port(), { method: "POST", path, body, headers })).status;
}

/** Like `post`, for requests that no client library sends: `target` and `fields` are latin1. */
async function raw(target: string, fields = ""): Promise<number> {
  const peer = await RawPeer.connect(gateway.port());
  peer.send(`GET ${target} HTTP/1.1\r\nhost: a.example\r\n${fields}connection: close\r\n\r\n`);
  const status = statusOf(await peer.message());
  peer.reset();
  return status;
}

test("a deny rule that can be evaluated decides", async () => {
  assert.equal(await post("/text", "select"), 200);
  assert.equal(await post("/text", "drop"), 403);
  assert.equal(await post("/bytes", "select"), 200);
  assert.equal(await post("/bytes", Buffer.from("\xff drop", "latin1")), 403);
  assert.equal(await post("/json", '{"user":"y"}'), 200);
  assert.equal(await post("/json", '{"user":"x"}'), 403);
  assert.equal(await post("/items", "", { x: "a,b" }), 200);
  assert.equal(await post("/items", "", { x: "a,evil" }), 403);
  assert.equal(await raw("/path/a"), 200);
  assert.equal(await raw("/path/%65vil"), 403);
});

test("a large body is read to its end", async () => {
  // Two reads of a socket, and well within the budget of expressions, which limits their processor time too.
  const padding = " ".repeat(80_000);
  assert.equal(await post("/text", padding), 200);
  assert.equal(await post("/text", `${padding}drop`), 403);
  assert.equal(await post("/bytes", `${padding}drop`), 403);
  assert.equal(await post("/json", `${padding}{"user":"x"}`), 403);
  assert.equal(await post("/json", `${padding}{"user":"y"}`), 200);
});

test("bytes that are not UTF-8 in a body, a header or a path do not bypass a deny rule", async () => {
  assert.equal(await post("/text", Buffer.from([0xff])), 403);
  assert.equal(await post("/json", Buffer.from('{"user":"\xff"}', "latin1")), 403);
  assert.equal(await raw("/items", "x: evil,\xff\r\n"), 403);
  assert.equal(await raw("/path/\xff"), 400);
  assert.equal(await raw("/path/%ff"), 403);
});

test("an invalid percent escape in path or query does not bypass a deny rule", async () => {
  for (const target of ["/path/%zz", "/path/evil%"]) assert.equal(await raw(target), 400, target);
  for (const target of ["/query?a=evil%2", "/query?%zz"]) assert.equal(await raw(target), 403, target);
});

test("a body that is not JSON does not bypass a rule that reads it", async () => {
  for (const body of ["", "{", '{"user":"x"', '{"user":"x"}}']) assert.equal(await post("/json", body), 403, body);
  assert.equal(await post("/required", "{"), 403);
  assert.equal(await post("/required", '{"blocked":"text"}'), 403);
  assert.equal(await post("/required", '{"blocked":false}'), 200);
  assert.equal(await post("/allowed", "{"), 403);
  assert.equal(await post("/allowed", '{"blocked":false}'), 200);
});

test("a request that exceeds the budget does not bypass a deny rule", async () => {
  const items = Array.from({ length: 2500 }, (_, i) => i).join(",");
  assert.equal(await post("/pairs", "", { x: items, y: items.replaceAll(",", "a,") }), 403);
  assert.equal(await post("/many", "a".repeat(1_500_000)), 403, "the work of all rules adds up");
  assert.equal(await post("/many", "a".repeat(10)), 200);
});

test("a repeated header does not bypass a deny rule for one value", async () => {
  assert.equal(await raw("/items", "x: evil\r\nx: good\r\n"), 403);
});

test("unset variables are null, and has() of their fields is false", async () => {
  assert.equal(await raw("/unset"), 403);
  assert.equal(await raw("/null"), 403);
  assert.equal(await raw("/claim"), 200);
});

test("absent keys are not a failure", async () => {
  assert.equal(await raw("/items"), 200);
  assert.equal(await post("/json", "{}"), 200);
});

test("the trace shows why a rule failed, as an error", async () => {
  const events = await traceOf(gateway, async () => assert.equal(await post("/json", "{"), 403));
  const [event] = events.filter(({ message }) => message.type === "authorizationResult");
  assert.equal(event?.severity, "error");
  assert.deepEqual(event?.message, {
    type: "authorizationResult",
    rules: [{ name: 'json(request.body).user == "x"', matched: false, mode: "deny", error: "the text is not JSON" }],
    result: "deny",
  });
});

test("a condition of alternatives that fails rejects the request, whatever the policy", async () => {
  for (const path of ["/limit", "/service", "/processor", "/remote", "/answer", "/change"]) {
    assert.equal(await post(path, "", { x: "{" }), 400, path);
    assert.equal(await post(path, "", { x: "{}" }), 200, `${path}: absent`);
    assert.equal(await post(path, ""), 200, `${path}: absent`);
  }
  assert.equal(await post("/limit", "", { x: '{"odd":true}' }), 429);
  assert.equal(await post("/answer", "", { x: '{"odd":true}' }), 451);
  const events = await traceOf(gateway, async () => assert.equal(await post("/limit", "", { x: "{" }), 400));
  assert.ok(JSON.stringify(events).includes("condition failed: the text is not JSON"));
  const why = "invalid request: the condition cannot be evaluated: the text is not JSON, at binds[0].listeners[0]";
  const said = (): boolean => gateway.lines.some(({ error }) => String(error).startsWith(why));
  await gateway.until(said, "the reason in the log, without the text of the expression");
});

test("a client cannot evade the count of a rate limit service", async () => {
  assert.equal(await post("/counted", "", { x: "{" }), 500);
  assert.equal(await raw("/counted", "y: 1\r\ny: 2\r\n"), 500, "a repeated header is not a string");
  assert.equal(await post("/counted", "", { x: "{}" }), 200);
});

test("a request whose precondition fails is not retried", async () => {
  let asked = 0;
  upstream.on("/retried", (request, response) => {
    asked++;
    request.resume();
    response.writeHead(503).end();
  });
  const tries = async (x: string): Promise<number> => {
    asked = 0;
    assert.equal(await post("/retried", "", { x }), 503);
    return asked;
  };
  assert.equal(await tries('{"odd":true}'), 4);
  assert.equal(await tries("{"), 1);
});

test("the log has its fields even if the rules have used up the budget", async () => {
  const line = (): Readonly<Record<string, unknown>> | undefined =>
    gateway.lines.find((each) => each["http.path"] === "/many/used-up");
  assert.equal(await post("/many/used-up", "a".repeat(1_500_000), { x: '{"logged":true}' }), 403);
  await gateway.until(() => line() !== undefined, "the log line");
  assert.equal(line()?.shown, '{"LOGGED":TRUE}');
});

test("no client can keep its requests out of the access log", async () => {
  const logged = (path: string): boolean => gateway.lines.some((line) => line["http.path"] === path);
  await post("/log/unwanted", "", { x: '{"logged":false}' });
  await post("/log/broken", "", { x: "{" });
  await post("/log/wanted", "", { x: '{"logged":true}' });
  await gateway.until(() => logged("/log/wanted"), "the line of the last request");
  assert.deepEqual([logged("/log/unwanted"), logged("/log/broken")], [false, true]);
});

test("a connection for which a deny rule fails is closed without a response", async () => {
  const rules = (deny: string): object => ({
    frontendPolicies: { networkAuthorization: { rules: [{ deny }] } },
    binds: [{ port: 0, listeners: [{ routes: [{ policies: { directResponse: { status: 204 } } }] }] }],
  });
  const ask = async (port: number): Promise<string> => {
    const peer = await RawPeer.connect(port);
    peer.send("GET / HTTP/1.1\r\nhost: a.example\r\nconnection: close\r\n\r\n");
    await peer.closed();
    return peer.received.split("\r\n", 1)[0] ?? "";
  };
  await using gateway = await LocalGateway.start(rules("source.port < 0"));
  assert.equal(await ask(gateway.port()), "HTTP/1.1 204 No Content");
  await gateway.reconfigure(rules("int(source.address) == 1"));
  assert.equal(await ask(gateway.port()), "");
});

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import type { ServerResponse } from "node:http";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { type TestContext, test } from "node:test";
import { fileURLToPath } from "node:url";
import { TGCTL } from "../../../test/helpers/programs.ts";
import { appRoot } from "../../base/app-root.ts";
import { closedPort, serve } from "../fixtures/admin.ts";
import { invoke } from "../fixtures/invoke.ts";
import { connectTo, injectedRequest } from "./inject.ts";

const STARTED = '{"eventStart":null,"eventEnd":1,"severity":"info","message":{"type":"requestStarted"}}';
const FINISHED = '{"eventStart":null,"eventEnd":9,"severity":"info","message":{"type":"requestFinished"}}';
const SAVED = fileURLToPath(new URL("../../report/fixtures/trace.jsonl", import.meta.url));

/** An admin server whose watcher gets two events, the second in two pieces, when `finish` is called. */
async function tracingAdmin(t: TestContext) {
  const watchers: ServerResponse[] = [];
  const armed = Promise.withResolvers<void>();
  const closed = Promise.withResolvers<void>();
  const admin = await serve(t, (_request, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(": ready\n\n");
    response.on("close", () => closed.resolve());
    watchers.push(response);
    armed.resolve();
  });
  const send = (event: string) => {
    for (const watcher of watchers) watcher.write(event);
  };
  const finish = () => {
    for (const watcher of watchers) watcher.end(`: keepalive\n\ndata: ${STARTED}\n\ndata: ${FINISHED}\n\n`);
  };
  return { ...admin, armed: armed.promise, closed: closed.promise, send, finish };
}

const trace = (adminPort: number, ...more: string[]) => [
  "proxy",
  "trace",
  "--local",
  "--raw",
  "--proxy-admin-port",
  String(adminPort),
  ...more,
];

test("watch mode prints each event on one line and ends with the stream", async (t) => {
  const admin = await tracingAdmin(t);
  const outcome = invoke(trace(admin.port, "--expression", "request.path == '/a b'"));
  await admin.armed;
  admin.finish();
  assert.deepEqual(await outcome, { code: 0, stdout: `${STARTED}\n${FINISHED}\n`, stderr: "" });
  const url = new URL(admin.requests[0]?.split(" ")[1] ?? "", "http://x");
  assert.equal(url.searchParams.get("expression"), "request.path == '/a b'");
});

test("inject mode sends the request, with curl's arguments, to the port and with the URL's host", async (t) => {
  const admin = await tracingAdmin(t);
  let seen = "";
  const listener = await serve(t, (request, response) => {
    request.setEncoding("utf8").on("data", (chunk: string) => {
      seen = `${request.headers.host} ${request.headers["x-a"]} ${chunk}`;
    });
    request.on("end", () => {
      response.end("a body that is not printed");
      admin.finish();
    });
  });
  const args = ["--port", String(listener.port), "--", "http://shop.example.com/x?y=1", "-H", "x-a: 1", "-d", "data"];
  const { code, stdout } = await invoke(trace(admin.port, ...args));
  assert.equal(code, 0);
  assert.equal(stdout, `${STARTED}\n${FINISHED}\n`);
  assert.deepEqual(listener.requests, ["POST /x?y=1"]);
  assert.equal(seen, "shop.example.com 1 data");
});

test("a request that fails in the proxy still shows its trace, and the failure", async (t) => {
  const admin = await tracingAdmin(t);
  const listener = await serve(t, (_request, response) => {
    response.writeHead(500).end();
    admin.finish();
  });
  const { code, stdout, stderr } = await invoke(
    trace(admin.port, "--port", String(listener.port), "--", "http://a/", "--fail"),
  );
  assert.equal(stdout, `${STARTED}\n${FINISHED}\n`);
  assert.equal(code, 1);
  assert.match(stderr, /Error: failed to execute traced request: curl: \(22\)/);
});

test("a request that reaches no listener ends the wait", async (t) => {
  const admin = await tracingAdmin(t);
  const { code, stdout, stderr } = await invoke(
    trace(admin.port, "--port", String(await closedPort()), "--", "http://a/"),
  );
  assert.equal(code, 1);
  assert.equal(stdout, "");
  assert.match(stderr, /^Error: failed to execute traced request: curl: \(7\)/);
});

test("the URLs decide where curl connects from, the port where to", () => {
  const request = injectedRequest([
    "http://A.example/x",
    "-e",
    "http://other/",
    "http://a.example:81/",
    "https://a.example",
  ]);
  assert.deepEqual(
    connectTo(request, 3000).filter((arg) => arg !== "--connect-to"),
    ["a.example:80:127.0.0.1:3000", "a.example:81:127.0.0.1:3000", "a.example:443:127.0.0.1:3000"],
  );
  assert.deepEqual(connectTo(injectedRequest(["http://[::1]:8080/"]), 1), ["--connect-to", "[::1]:8080:127.0.0.1:1"]);
  assert.throws(() => injectedRequest(["http://a/", "http://b/"]), /must have the same host, found a and b/);
  assert.throws(() => injectedRequest(["http://"]), /http:\/\/ is not valid/);
});

test("a rejected trace prints the reason; a stream without an event is an error", async (t) => {
  const refusing = await serve(t, (_request, response) => response.writeHead(400).end("invalid expression: x\n"));
  const refused = await invoke(trace(refusing.port, "--expression", "x x"));
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /^Error: trace stream returned 400: invalid expression: x\nTry: /);
  const forbidding = await serve(t, (_request, response) =>
    response.writeHead(403).end("this gateway does not reveal\n"),
  );
  const forbidden = await invoke(trace(forbidding.port, "--reveal"));
  assert.equal(forbidden.code, 1);
  assert.match(
    forbidden.stderr,
    /^Error: trace stream returned 403: this gateway does not reveal\nTry: .*without --reveal/,
  );
  const ending = await serve(t, (_request, response) => response.end(": ready\n\n"));
  const ended = await invoke(trace(ending.port));
  assert.equal(ended.code, 1);
  assert.match(ended.stderr, /^Error: the trace stream ended before any event\n/);
});

test("a saved trace is read as JSON Lines or as the text of the stream, from a file or standard input", async () => {
  const saved = readFileSync(SAVED, "utf8");
  assert.equal((await invoke(["proxy", "trace", "--file", SAVED])).stdout, saved);
  const stream = `: ready\n\nevent: x\ndata: {"message":\ndata:  {}}\n\n: keepalive\r\n\r\ndata: ${STARTED}`;
  const { stdout } = await invoke(["proxy", "trace", "--raw", "--file", "-"], stream);
  assert.equal(stdout, `{"message": {}}\n${STARTED}\n`);
});

test("-o text: a line per event with its time, and at the end what decided", async () => {
  const { code, stdout } = await invoke(["trace", "-o", "text", "--file", SAVED]);
  assert.equal(code, 0);
  const lines = stdout.split("\n");
  assert.equal(lines[0], "     0.003           Request Start   request started");
  assert.equal(lines[5], '     0.160           Route           selected "cart" (3 evaluated)');
  assert.equal(lines[14], "     2.385  error    Backend Result  status=503");
  assert.equal(
    lines[21],
    "POST http://shop.example.com/api/cart?debug=1 → 503 in 2.51 ms · route cart · backend 127.0.0.1:9000 returned 503",
  );
});

test("--tree: what happened, then every decision; -o text ends with the same", async () => {
  const { code, stdout } = await invoke(["trace", "--tree", "--file", SAVED]);
  assert.equal(code, 0);
  const lines = stdout.split("\n");
  assert.match(lines[0] ?? "", /^POST http:\/\/shop\.example\.com\/api\/cart\?debug=1 → 503 /);
  assert.deepEqual(lines.slice(1, 8), [
    "– policy cors  no Origin header",
    "✓ route cart  takes precedence",
    "    ✗ route assets  path: /api/cart does not begin with /assets",
    "    ✗ route everything  precedence: /api is longer than /",
    "✓ policy authorization  allow rules[0] is true",
    "    ✓ rule allow signed-in → true",
    "    ✗ rule deny blocked → false",
  ]);
  assert.ok(lines.includes("✓ endpoint 127.0.0.1:9000  status 503"));
  const text = await invoke(["trace", "-o", "text", "--file", SAVED]);
  assert.ok(text.stdout.endsWith(stdout));
  const both = await invoke(["trace", "--tree", "--raw", "--file", SAVED]);
  assert.deepEqual(
    [both.code, both.stderr.split("\n")[0]],
    [2, "Error: --tree is an output of its own; leave out --raw and -o"],
  );
});

test("--tree: values cannot control the terminal", async () => {
  const result = { type: "apply", details: "a\u001b]0;owned\u0007b", snapshot: null };
  const event = { eventEnd: 1, severity: "info", message: { type: "policy", kind: "cors", result } };
  const { stdout } = await invoke(["trace", "--tree", "--file", "-"], JSON.stringify(event));
  assert.match(stdout, /^✓ policy cors {2}a␛\]0;owned␇b$/m);
});

test("--tree: events of another version are no reason to fail", async () => {
  const event = { eventEnd: 1, severity: "info", message: { type: "policy", kind: "new" } };
  const { code, stdout } = await invoke(["trace", "--tree", "--file", "-"], JSON.stringify(event));
  assert.equal(code, 0);
  assert.match(stdout, /cannot be shown as a tree/);
});

test("-o text: values cannot control the terminal", async () => {
  const event = { eventEnd: 1, message: { type: "message", text: "a\u001b]0;owned\u0007b" } };
  const { stdout } = await invoke(["trace", "-o", "text", "--file", "-"], JSON.stringify(event));
  assert.ok(!stdout.includes("\u001b") && stdout.includes("a␛]0;owned␇b"), stdout);
});

test("whatever a client has sent, no format prints characters that control a terminal, and JSON keeps its meaning", async () => {
  const sent = "a\u009b2Jb\u0085\u007f\u202ec\u200bd\u2066";
  const message = { type: "backendCallResult", status: null, error: sent };
  const event = { eventStart: 0, eventEnd: 0, severity: "error", message };
  const text = `${JSON.stringify(event)}\n`;
  for (const format of [["--raw"], ["-o", "json"], ["-o", "text"]]) {
    const { stdout } = await invoke(["trace", ...format, "--file", "-"], text);
    assert.match(stdout, /2Jb/, format.join(" "));
    assert.doesNotMatch(stdout.replaceAll("\n", ""), /[\p{Cc}\p{Bidi_Control}\u200b]/u, format.join(" "));
    if (!format.includes("text")) assert.deepEqual(JSON.parse(stdout), event);
  }
});

test("-o json is --raw", async () => {
  const raw = await invoke(["trace", "--raw", "--file", SAVED]);
  assert.deepEqual(await invoke(["trace", "-o", "json", "--file", SAVED]), raw);
});

test("a file that is not a trace is rejected with the reason", async () => {
  const file = (content: string) => invoke(["proxy", "trace", "--file", "-"], content);
  assert.match(
    (await file("{oops\n")).stderr,
    /^Error: failed to decode trace event: .*\nWhy: line 1 of standard input reads \{oops\n/,
  );
  assert.match((await file("data: 7\n\n")).stderr, /^Error: failed to decode trace event: not a JSON object\n/);
  assert.match((await file("# nothing\n")).stderr, /^Error: no trace event found in standard input\nTry: /);
  assert.match(
    (await invoke(["proxy", "trace", "-f", "missing"])).stderr,
    /^Error: failed to read trace file missing: it does not exist/,
  );
});

test("without curl a request cannot be sent, and the error says what to do", async (t) => {
  const admin = await tracingAdmin(t);
  const main = join(appRoot, "src/cli/main.ts");
  const args = trace(admin.port, "--port", "3000", "--", "http://a/");
  const child = spawn(process.execPath, [main, ...args], { env: { PATH: "/nowhere" } });
  t.after(() => child.kill("SIGKILL"));
  const [exit, stderr] = await Promise.all([once(child, "exit"), text(child.stderr)]);
  assert.deepEqual(exit, [1, null]);
  assert.match(stderr, /curl was not found on PATH\nTry: install curl, or leave out the URL/);
});

test("Ctrl-C ends the wait with 130 and closes the stream", async (t) => {
  const admin = await tracingAdmin(t);
  const child = spawn(TGCTL, trace(admin.port));
  t.after(() => child.kill("SIGKILL"));
  await admin.armed;
  child.kill("SIGINT");
  assert.deepEqual(await once(child, "exit"), [130, null]);
  await admin.closed;
});

test("a reader that goes away ends the command without an error", async (t) => {
  const admin = await tracingAdmin(t);
  const child = spawn(TGCTL, trace(admin.port));
  t.after(() => child.kill("SIGKILL"));
  let stderr = "";
  child.stderr.setEncoding("utf8").on("data", (chunk: string) => {
    stderr += chunk;
  });
  await admin.armed;
  admin.send(`data: ${STARTED}\n\n`);
  const [line] = await once(child.stdout.setEncoding("utf8"), "data");
  assert.equal(line, `${STARTED}\n`);
  child.stdout.destroy();
  const exit = once(child, "exit");
  admin.send(`data: ${STARTED}\n\n`);
  assert.deepEqual(await exit, [0, null]);
  assert.equal(stderr, "");
});

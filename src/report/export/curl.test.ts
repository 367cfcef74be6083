import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer, text } from "node:stream/consumers";
import { type TestContext, test } from "node:test";
import { fc } from "../../../test/helpers/property.ts";
import { type Fields, fieldsOf } from "../../base/fields.ts";
import { EVENTS } from "../fixtures/trace.ts";
import { rowsOf } from "../rows.ts";
import { curlCommand } from "./curl.ts";

interface Sent {
  readonly method?: string;
  readonly target?: string;
  readonly version?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Buffer;
}

/** The trace of a request at this port of this machine. */
function traceOf(
  { method = "GET", target = "/", version = "HTTP/1.1", headers = {}, body }: Sent,
  port: number,
): Fields[] {
  const request = {
    method,
    uri: `http://shop.example${target}`,
    version,
    headers: { host: "shop.example", ...headers },
  };
  const requestState = { request, destination: { address: "127.0.0.1", port } };
  const messages: Fields[] = [{ type: "requestSnapshot", stage: "initial request", requestState }];
  if (body) messages.push({ type: "bodySnapshot", stage: "final request", body: body.toString("base64") });
  messages.push({ type: "requestFinished", status: 200, error: null });
  return messages.map((message, i) => ({ eventStart: null, eventEnd: i, severity: "info", message }));
}

/** Runs commands in a shell, and returns the requests that they sent here. */
async function shell(t: TestContext) {
  const received: { line: string; headers: Record<string, string>; body: Buffer }[] = [];
  const server = createServer(async (request, response) => {
    const headers: Record<string, string> = {};
    for (let i = 0; i < request.rawHeaders.length; i += 2)
      headers[String(request.rawHeaders[i]).toLowerCase()] = String(request.rawHeaders[i + 1]);
    const { method, url, httpVersion } = request;
    received.push({ line: `${method} ${url} HTTP/${httpVersion}`, headers, body: await buffer(request) });
    response.end("fine");
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  t.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  return {
    port,
    async run(command: string, env: Readonly<Record<string, string>> = {}) {
      const bash = spawn("bash", { env: { PATH: process.env.PATH, ...env }, stdio: ["pipe", "ignore", "pipe"] });
      bash.stdin.end(command);
      const [stderr, [code]] = await Promise.all([text(bash.stderr), once(bash, "close")]);
      if (code !== 0) throw new Error(stderr);
      return received.at(-1);
    },
    received,
  };
}

function commandOf(events: readonly Fields[]): string {
  const command = curlCommand(rowsOf(events));
  assert.ok(command !== undefined);
  return command;
}

test("the command of a whole trace", () => {
  assert.equal(
    commandOf(EVENTS),
    `# POST http://shop.example.com/api/cart?debug=1 → 503 in 2.51 ms · route cart · backend 127.0.0.1:9000 returned 503
# Redacted in the trace: set SECRET_AUTHORIZATION before you run this.
# The body is the one that was sent to the backend.
curl --include \\
  --header 'user-agent: curl/8.5.0' \\
  --header 'accept: */*' \\
  --header 'authorization: '"\${SECRET_AUTHORIZATION:?}" \\
  --header 'content-type:' \\
  --data-raw '{"item":"teapot","count":2}' \\
  --url 'http://shop.example.com/api/cart?debug=1'
`,
  );
});

test("whatever a client sent, the shell sends the same and runs nothing else", async (t) => {
  const { port, run } = await shell(t);
  // Visible ASCII and bytes above, spaces inside only, as HTTP allows.
  const byte = fc.integer({ min: 0x20, max: 0xff }).filter((code) => code < 0x7f || code > 0x9f);
  const value = fc.array(byte, { maxLength: 20 }).map((codes) => String.fromCharCode(...codes).trim());
  const nasty = fc.constantFrom(
    "$(touch owned)",
    "`id`",
    "'; id #",
    "\\'",
    '"$HOME"',
    "!!",
    "a\\",
    "@/etc/passwd",
    "%{http_code}",
    "",
  );
  const bytes = fc.uint8Array({ maxLength: 200 }).map((array) => Buffer.from(array));
  const body = fc.oneof(
    bytes,
    nasty.map((each) => Buffer.from(each)),
    fc.constant(undefined),
  );
  const target = fc.constantFrom("/", "/a b?c='$(id)'", "/a/../b?x[0]={1,2}", "/%2e/?q=`id`&x=\\");
  await fc.assert(
    fc.asyncProperty(
      fc.oneof(value, nasty),
      fc.constantFrom("GET", "POST", "PUT", "PATCH"),
      target,
      body,
      async (field, method, path, content) => {
        const sent = {
          method,
          target: path.replaceAll(" ", "%20"),
          headers: { "x-a": field, "x-b": `a${field}` },
          ...(content && { body: content }),
        };
        const got = await run(commandOf(traceOf(sent, port)));
        assert.equal(got?.line, `${method} ${sent.target} HTTP/1.1`);
        assert.equal(got?.headers["x-a"], field);
        assert.equal(got?.headers["x-b"], `a${field}`);
        assert.deepEqual(got?.body, content ?? Buffer.alloc(0));
        assert.deepEqual(
          Object.keys(got?.headers ?? {}).filter((name) => !/^(host|x-a|x-b|content-length|expect)$/.test(name)),
          [],
        );
      },
    ),
    { numRuns: 25 },
  );
});

test("a body that is too long for an argument comes from standard input", async (t) => {
  const { port, run } = await shell(t);
  const body = Buffer.alloc(200_000, "it's\n");
  const got = await run(commandOf(traceOf({ method: "POST", body }, port)));
  assert.ok(got?.body.equals(body));
});

test("redacted values are variables: without them the shell stops, with them the request has them", async (t) => {
  const { port, run, received } = await shell(t);
  const headers = { cookie: "<redacted>", "x-$(id)-token": "<redacted>" };
  const command = commandOf(traceOf({ target: "/?a=1&access_token=<redacted>&b=2#x", headers }, port));
  await assert.rejects(run(command), /SECRET_COOKIE/);
  assert.equal(received.length, 0);
  const got = await run(command, { SECRET_COOKIE: "a=b c", SECRET_ACCESS_TOKEN: "t$" });
  assert.equal(got?.line, "GET /?a=1&access_token=t$&b=2 HTTP/1.1");
  assert.equal(got?.headers.cookie, "a=b c");
  // A name that no request can have.
  assert.ok(!command.includes("$(id)"), command);
  const own = commandOf(traceOf({ headers: { "x-a": "${SECRET_OF_CLIENT:?}" } }, port));
  assert.doesNotMatch(own, /Redacted in the trace/);
});

test("methods and versions that need options of curl", async (t) => {
  const { port, run } = await shell(t);
  assert.equal((await run(commandOf(traceOf({ method: "HEAD" }, port))))?.line, "HEAD / HTTP/1.1");
  assert.equal((await run(commandOf(traceOf({ version: "HTTP/1.0" }, port))))?.line, "GET / HTTP/1.0");
  assert.equal(
    (await run(commandOf(traceOf({ headers: { host: "other.example" } }, port))))?.headers.host,
    "other.example",
  );
  assert.match(commandOf(traceOf({ version: "HTTP/2" }, port)), /--http2-prior-knowledge/);
});

test("a trace without a request that curl can send has no command", () => {
  assert.equal(
    curlCommand(rowsOf(EVENTS.filter(({ message }) => fieldsOf(message).type !== "requestSnapshot"))),
    undefined,
  );
  const other = JSON.stringify(EVENTS).replaceAll('"uri":"http:', '"uri":"file:');
  assert.equal(curlCommand(rowsOf(JSON.parse(other))), undefined);
});

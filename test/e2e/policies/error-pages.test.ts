import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { gunzipSync } from "node:zlib";
import { TestGateway } from "../../helpers/gateway.ts";
import { GrpcClient } from "../../helpers/grpc-client.ts";
import { H2Client } from "../../helpers/h2-client.ts";
import { LocalGateway } from "../../helpers/local-gateway.ts";
import { type RawMessage, RawPeer, RawUpstream, reply, statusOf, valuesOf } from "../../helpers/raw-peer.ts";

const LONG = "x".repeat(3_000_000);
const folder = mkdtempSync(join(tmpdir(), "error-pages-"));
const file = join(folder, "error.html");
writeFileSync(file, "<h1>listener {{ response.code }}</h1>");

let upstream: RawUpstream;
let gateway: TestGateway;

before(async () => {
  upstream = await RawUpstream.answering(({ start }) => {
    const [, path = ""] = start.split(" ");
    if (path.startsWith("/pages/long")) return reply(LONG, ["Content-Type: text/x"], "500 No");
    const fields = [
      "Content-Type: text/x",
      'ETag: "old"',
      "Content-Encoding: br",
      "Accept-Ranges: bytes",
      "X-Kept: yes",
    ];
    return reply("of the backend", fields, path.includes("ok") ? "200 OK" : "404 Not Found");
  });
  const backends = [{ host: `127.0.0.1:${upstream.port}` }];
  const at = (pathPrefix: string, policies: object, more: object = { backends }) => ({
    matches: [{ path: { pathPrefix } }],
    policies,
    ...more,
  });
  const ofRoute = [
    {
      statuses: [404, 500],
      from: "both",
      html: "<h1>route {{ response.code }}: {{ request.path }}{{ request.headers.cookie }}</h1>",
    },
    { statuses: [502], text: "the response is too long" },
  ];
  const body = { status: 503, body: "written by hand" };
  gateway = await TestGateway.start({
    binds: [
      {
        port: 0,
        listeners: [
          {
            policies: {
              errorPages: [
                { statuses: ["4xx", 502, 503], html: { file }, json: '{"code": {{ response.code }}}' },
                { statuses: [503], text: "only as text" },
              ],
            },
            routes: [
              at("/pages", { errorPages: ofRoute, compression: { minSize: 1 } }),
              at("/short", { errorPages: ofRoute, buffer: { response: { maxBytes: 5 } } }),
              at("/plain", {}),
              at("/changed", { errorPages: ofRoute, transformations: { response: { body: '"by CEL"' } } }),
              at("/forbidden", {
                authorization: { rules: ["false"] },
                errorPages: [{ statuses: [403], text: "of the route" }],
              }),
              at("/down", {}, { backends: [] }),
              at("/maintenance", { directResponse: { status: 503 } }),
              at("/written", { directResponse: body }),
              at("/asked", { extAuthz: { host: `127.0.0.1:${upstream.port}`, protocol: { http: {} } } }),
              at("/too-long", { buffer: { response: { maxBytes: 5 } } }),
              at("/denied", { authorization: { rules: ["false"] }, cors: { allowOrigins: ["https://a.test"] } }),
            ],
          },
        ],
      },
    ],
  });
});
after(async () => {
  await gateway.stop();
  await upstream[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

function ask(path: string, accept = "text/html", method = "GET", ...fields: string[]): Promise<RawMessage> {
  const lines = [`${method} ${path} HTTP/1.1`, "Host: a", `Accept: ${accept}`, ...fields, "", ""];
  return RawPeer.ask(gateway.port(), lines.join("\r\n"));
}

async function bodyOf(
  path: string,
  accept?: string,
): Promise<[status: number, type: string | undefined, body: string]> {
  const response = await ask(path, accept);
  return [statusOf(response), valuesOf(response, "content-type")[0], response.body];
}

const HTML = "text/html; charset=utf-8";
const TEXT = "text/plain; charset=utf-8";
const JSON_TYPE = "application/json";

test("errors of the gateway get the page in the form that the client accepts", async () => {
  assert.deepEqual(await bodyOf("/nowhere"), [404, HTML, "<h1>listener 404</h1>"]);
  assert.deepEqual(await bodyOf("/nowhere", "application/json"), [404, JSON_TYPE, '{"code": 404}']);
  assert.deepEqual(await bodyOf("/nowhere", "image/png"), [404, "text/plain", "route not found"]);
  assert.deepEqual(await bodyOf("/down", "*/*"), [500, "text/plain", "no valid backends"], "no entry has the status");
  const denied = await ask("/denied", "text/html", "GET", "Origin: https://a.test");
  assert.deepEqual(
    [denied.body, valuesOf(denied, "access-control-allow-origin")],
    ["<h1>listener 403</h1>", ["https://a.test"]],
  );
  assert.deepEqual(valuesOf(denied, "vary").join().toLowerCase().split(",").sort(), ["accept", "origin"]);
});

test("errors of the backend get a page where the entry says so, without what described their body", async () => {
  assert.deepEqual(await bodyOf("/plain"), [404, "text/x", "of the backend"]);
  assert.deepEqual(await bodyOf("/pages/ok"), [200, "text/x", "of the backend"]);
  const response = await ask("/pages/'x'", "text/html", "GET", "Cookie: <script>");
  assert.equal(response.body, "<h1>route 404: /pages/&#39;x&#39;&lt;script&gt;</h1>");
  assert.deepEqual(
    ["content-type", "content-length", "x-kept", "etag", "content-encoding", "accept-ranges"].map((name) =>
      valuesOf(response, name),
    ),
    [[HTML], [String(response.body.length)], ["yes"], [], [], []],
  );
  assert.deepEqual(
    await bodyOf("/pages/x", "application/json"),
    [404, "text/x", "of the backend"],
    "the route has HTML only",
  );
  const [status, type, body] = await bodyOf("/pages/long");
  assert.deepEqual([status, type, body], [500, HTML, "<h1>route 500: /pages/long</h1>"]);
  const packed = await ask("/pages/x", "text/html", "GET", "Accept-Encoding: gzip");
  assert.equal(gunzipSync(Buffer.from(packed.body, "latin1")).toString(), "<h1>route 404: /pages/x</h1>");
});

test("errors of response policies get their page too, and bodies that a policy has written stay", async () => {
  assert.deepEqual(await bodyOf("/short/ok", "*/*"), [502, TEXT, "the response is too long"]);
  assert.deepEqual(await bodyOf("/maintenance"), [503, HTML, "<h1>listener 503</h1>"]);
  assert.deepEqual(await bodyOf("/maintenance", "text/plain"), [503, TEXT, "only as text"]);
  assert.deepEqual((await bodyOf("/written"))[2], "written by hand");
  assert.deepEqual((await bodyOf("/changed"))[2], "by CEL");
  assert.deepEqual((await bodyOf("/asked"))[2], "of the backend", "the body of an authorization service");
  assert.deepEqual(await bodyOf("/too-long/ok", "*/*"), [502, HTML, "<h1>listener 502</h1>"]);
});

test("the page of a route comes before that of its listener, if the client accepts it", async () => {
  assert.deepEqual(await bodyOf("/forbidden", "*/*"), [403, TEXT, "of the route"]);
  assert.deepEqual(await bodyOf("/forbidden", "text/html"), [403, HTML, "<h1>listener 403</h1>"]);
});

test("of levels that merge, the inner one's page comes first", async () => {
  const pages = (name: string, ...others: number[]) => [{ statuses: [404, ...others], text: name }];
  const at = (pathPrefix: string, status: number) => ({
    matches: [{ path: { pathPrefix } }],
    policies: { errorPages: pages("inner"), directResponse: { status } },
  });
  await using local = await LocalGateway.start({
    binds: [{ port: 0, listeners: [{ routes: [at("/", 404), at("/gone", 410)] }] }],
    policies: [
      {
        name: { name: "all" },
        target: { gateway: { gatewayName: "default" } },
        policy: { errorPages: pages("outer", 410) },
      },
    ],
  });
  for (const [path, expected] of [
    ["/", "inner"],
    ["/gone", "outer"],
  ] as const)
    assert.equal((await RawPeer.ask(local.port(), `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`)).body, expected);
});

test("a response to HEAD has the length of the page and no body; HTTP/2 has pages, gRPC none", async () => {
  const client = await RawPeer.connect(gateway.port());
  for (const path of ["/nowhere", "/pages/x"]) {
    client.send(`HEAD ${path} HTTP/1.1\r\nHost: a\r\nAccept: text/html\r\n\r\n`);
    const { body } = await ask(path);
    assert.deepEqual(valuesOf(await client.message(true), "content-length"), [String(body.length)]);
  }
  client.send("GET /plain/ok HTTP/1.1\r\nHost: a\r\n\r\n");
  assert.equal((await client.message()).body, "of the backend", "no byte of a page came between");
  client.socket.destroy();
  const http2 = await H2Client.connect(gateway.port());
  http2.request(1, "GET", ["accept", "text/html"], "/nowhere");
  assert.equal((await http2.response(1)).body, "<h1>listener 404</h1>");
  http2.peer.socket.destroy();
  using grpc = new GrpcClient(gateway.port());
  const { status } = await grpc.unary("/nowhere/Call", "x");
  assert.deepEqual([status.code, status.details], [12, "route not found"]);
});

test("a page in a file follows the file, and a page that cannot work leaves the last one", async () => {
  const lines = (begin: string): string[] =>
    gateway.lines.map(({ message }) => String(message)).filter((message) => message.startsWith(begin));
  writeFileSync(file, "<h1>new {{ response.code }}</h1>");
  await gateway.until(() => lines("configuration reloaded").length > 0, "the new page");
  assert.equal((await bodyOf("/nowhere"))[2], "<h1>new 404</h1>");
  writeFileSync(file, "<h1>\n{{ response.cod }}</h1>");
  await gateway.until(() => lines("Failed to reload").length > 0, "the rejection");
  assert.match(lines("Failed to reload").join(), /errorPages\[0\]\.html.*line 2: \{\{ response\.cod \}\}/s);
  assert.equal((await bodyOf("/nowhere"))[2], "<h1>new 404</h1>");
});

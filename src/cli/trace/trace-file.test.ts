import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { packageVersion } from "../../base/build-info.ts";
import { EVENTS, FIXTURE } from "../../report/fixtures/trace.ts";
import { traceFileText } from "../../report/trace-file.ts";
import { serve } from "../fixtures/admin.ts";
import { invoke } from "../fixtures/invoke.ts";

const PLAIN = readFileSync(FIXTURE, "utf8");
const FILE = traceFileText(EVENTS, false);

function folder(t: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), "trace-file-"));
  t.after(() => rmSync(path, { recursive: true }));
  return path;
}

/** An admin server whose watchers get the fixture's events, and `end` instead of the last if given. */
async function tracing(t: TestContext, lines = PLAIN.trim().split("\n")): Promise<readonly string[]> {
  const { port } = await serve(t, (_request, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.end(`: ready\n\n${lines.map((line) => `data: ${line}\n\n`).join("")}`);
  });
  return ["trace", "--local", "--proxy-admin-port", String(port)];
}

test("--save writes the trace that is shown, under a line that says format, version and what was redacted", async (t) => {
  const path = join(folder(t), "trace.jsonl");
  const { code, stdout } = await invoke([...(await tracing(t)), "--save", path]);
  assert.deepEqual([code, stdout], [0, PLAIN]);
  const [first = "", ...others] = readFileSync(path, "utf8").split("\n");
  assert.deepEqual(JSON.parse(first), {
    traceFile: 1,
    tracegate: packageVersion(),
    events: 21,
    revealed: false,
    redacted: { headers: ["authorization"], parameters: [], fields: [] },
  });
  assert.equal(others.join("\n"), PLAIN);
  assert.equal(statSync(path).mode & 0o777, 0o600);
  const saved = readFileSync(path, "utf8");
  await invoke([...(await tracing(t)), "--save", path]);
  assert.equal(readFileSync(path, "utf8"), saved);
});

test("--save - writes the file to standard output, and nothing else", async (t) => {
  const { stdout } = await invoke([...(await tracing(t)), "--tree", "--save", "-"]);
  assert.equal(stdout, FILE);
});

test("a trace of revealed secrets says so in its file", async (t) => {
  const { stdout } = await invoke([...(await tracing(t)), "--reveal", "--save", "-"]);
  assert.equal(JSON.parse(stdout.split("\n")[0] ?? "").revealed, true);
});

test("a stream that breaks leaves what has arrived in the file; one without events leaves the old content", async (t) => {
  const path = join(folder(t), "trace.jsonl");
  const broken = await invoke([...(await tracing(t, [PLAIN.split("\n")[0] ?? "", "{oops"])), "--save", path]);
  assert.equal(broken.code, 1);
  const saved = readFileSync(path, "utf8");
  assert.match(saved, /^\{"traceFile":1,.*"events":1,.*\}\n\{.*"requestStarted"\}\}\n$/);
  assert.equal((await invoke([...(await tracing(t, [])), "--save", path])).code, 1);
  assert.equal(readFileSync(path, "utf8"), saved);
});

test("a path that cannot be written fails before the trace", async (t) => {
  const path = join(folder(t), "missing", "trace.jsonl");
  const { code, stdout, stderr } = await invoke([...(await tracing(t)), "--save", path]);
  assert.deepEqual([code, stdout], [1, ""]);
  assert.match(stderr, /^Error: cannot write the trace file .*missing\/trace\.jsonl: it does not exist/);
});

test("open shows a saved file as the stream itself, in each format, from a file or standard input", async (t) => {
  const path = join(folder(t), "trace.jsonl");
  writeFileSync(path, FILE);
  for (const format of [["--raw"], ["-o", "text"], ["--tree"], []]) {
    const plain = await invoke(["trace", ...format, "--file", FIXTURE]);
    assert.deepEqual(await invoke(["trace", "open", ...format, path]), plain);
    assert.deepEqual(await invoke(["trace", "open", ...format, "-"], FILE), plain);
  }
});

/** What the command says about a file with this content, and what it has shown before. */
async function opened(content: string): Promise<{ readonly stdout: string; readonly stderr: string }> {
  const { code, stdout, stderr } = await invoke(["trace", "open", "-"], content);
  assert.equal(code, 1);
  return { stdout, stderr };
}

test("a file of a later format is not shown, and the error names the version that can", async () => {
  const { stdout, stderr } = await opened(
    FILE.replace('"traceFile":1', '"traceFile":2').replace(packageVersion(), "99.1.0"),
  );
  assert.equal(stdout, "");
  assert.match(
    stderr,
    /^Error: standard input is a trace file of format 2; this tgctl reads format 1\nTry: .*99\.1\.0/,
  );
});

test("a file that was cut short is shown as far as it goes; the error says where", async () => {
  const lines = FILE.split("\n");
  const between = await opened(`${lines.slice(0, 4).join("\n")}\n`);
  assert.equal(between.stdout, `${lines.slice(1, 4).join("\n")}\n`);
  assert.match(between.stderr, /^Error: the trace in standard input is cut short\nWhy: it has 3 of 21 events\nTry: /);
  const inside = await opened(`${lines.slice(0, 4).join("\n")}\n${lines[4]?.slice(0, 50)}`);
  assert.equal(inside.stdout, between.stdout);
  assert.match(inside.stderr, /\nWhy: line 5 ends in the middle of an event\n/);
});

test("a file that is empty, or no trace, is an error that says what to pass", async () => {
  for (const content of ["", `${FILE.split("\n")[0]}\n`.replace('"events":21', '"events":0'), "kind: Gateway\n"])
    assert.match((await opened(content)).stderr, /^Error: no trace event found in standard input\nTry: .*--save/);
  const { stderr } = await opened(`${PLAIN}7\n{"a":\n${PLAIN}`);
  assert.match(stderr, /^Error: failed to decode trace event: .*\nWhy: line 23 of standard input reads \{"a":\n/);
});

test("a file that is too large is not read to its end", async () => {
  const { stderr } = await opened(`:${" ".repeat(50 * 1024 * 1024)}\n`.repeat(3));
  assert.match(stderr, /^Error: failed to read trace file standard input: it is larger than 128 MiB/);
});

test("diff exits with 1 and prints what differs, or says that nothing does", async (t) => {
  const path = join(folder(t), "trace.jsonl");
  writeFileSync(path, FILE);
  assert.deepEqual(await invoke(["trace", "diff", path, FIXTURE]), { code: 0, stdout: "no difference\n", stderr: "" });
  const other = FILE.replaceAll('"status":503', '"status":502').replaceAll('"code":503', '"code":502');
  const { code, stdout } = await invoke(["trace", "diff", path, "-"], other);
  assert.equal(code, 1);
  assert.deepEqual(stdout.split("\n").slice(0, 8), [
    `--- ${path}: POST http://shop.example.com/api/cart?debug=1 → 503 in 2.51 ms · route cart · backend 127.0.0.1:9000 returned 503`,
    "+++ standard input: POST http://shop.example.com/api/cart?debug=1 → 502 in 2.51 ms · route cart · backend 127.0.0.1:9000 returned 502",
    "  … 19 equal lines",
    "  ✓ request POST http://shop.example.com/cart?debug=1",
    "- ✓ endpoint 127.0.0.1:9000  status 503",
    "- ✗ response 503  by the backend",
    "+ ✓ endpoint 127.0.0.1:9000  status 502",
    "+ ✗ response 502  by the backend",
  ]);
  const json = await invoke(["trace", "diff", "--json", path, "-"], other);
  const { same, omitted, lines } = JSON.parse(json.stdout);
  assert.deepEqual(
    [json.code, same, omitted, lines[1]],
    [1, false, 19, { sign: "-", text: "✓ endpoint 127.0.0.1:9000  status 503" }],
  );
});

test("diff: what cannot be compared is an error", async (t) => {
  const path = join(folder(t), "trace.jsonl");
  writeFileSync(path, FILE);
  const error = async (...files: readonly string[]) => {
    const { code, stdout, stderr } = await invoke(["trace", "diff", ...files], `${PLAIN}${PLAIN}`);
    assert.equal(stdout, "");
    return `${code} ${stderr}`;
  };
  assert.match(await error(path), /^2 Error: diff takes two files, received 1\n/);
  assert.match(await error("-", "-"), /^2 Error: only one of the files can be standard input\n/);
  assert.match(
    await error(path, "-"),
    /^1 Error: standard input holds the traces of several requests\nWhy: .* 22\nTry: /,
  );
  writeFileSync(path, '{"message":{"type":"policy","kind":"new"}}\n');
  assert.match(await error(path, FIXTURE), /^1 Error: .* cannot be compared\nWhy: a proxy of another version/);
});

test("export writes each format from a file or standard input", async () => {
  const har = await invoke(["trace", "export", "--format", "har", FIXTURE]);
  assert.equal(JSON.parse(har.stdout).log.entries.length, 2);
  assert.deepEqual(await invoke(["trace", "export", "--format", "har", "-"], FILE), har);
  assert.match((await invoke(["trace", "export", "--format", "html", "-"], FILE)).stdout, /^<!doctype html>/);
  const curl = await invoke(["trace", "export", "--format", "curl", "-"], FILE);
  assert.match(curl.stdout, /^curl --include/m);
});

/** Places of a request and its response where a secret can be, each with its own secret: only `--reveal` shows them in a trace. */
const PLANTED = {
  headers: {
    authorization: "Bearer planted-authorization",
    cookie: "sid=planted-cookie",
    "x-api-key": "planted-api-key",
    "x-amz-security-token": "planted-amz-token",
    referer: "http://a.test/?code=planted-code-in-referer",
  },
  uri: "http://user:planted-user-info@shop.example/a?access_token=planted-in-query&next=http%3A%2F%2Fb.test%2F%3Ftoken%3Dplanted-nested",
  response: {
    "set-cookie": "sid=planted-set-cookie",
    location: "http://b.test/?code=planted-in-location",
    "www-echo": "echo planted-api-key",
  },
};

test("exports of a trace that was recorded with --reveal have none of its secrets", async () => {
  const request = {
    method: "GET",
    uri: PLANTED.uri,
    version: "HTTP/1.1",
    headers: { host: "shop.example", ...PLANTED.headers },
  };
  const messages = [
    { type: "requestStarted", requestId: "planted-api-key" },
    {
      type: "requestSnapshot",
      stage: "initial request",
      requestState: { request, jwt: { raw: "planted-authorization" } },
    },
    {
      type: "policy",
      kind: "transformation",
      result: { type: "apply", details: "set x to planted-api-key", snapshot: null },
    },
    { type: "requestSnapshot", stage: "final request", requestState: { request } },
    { type: "backendCallStart", target: "127.0.0.1:9000" },
    { type: "backendCallResult", status: 302, error: null },
    {
      type: "responseSnapshot",
      stage: "raw response",
      requestState: { response: { code: 302, headers: PLANTED.response } },
    },
    {
      type: "responseSnapshot",
      stage: "final response",
      requestState: { response: { code: 302, headers: PLANTED.response } },
    },
    { type: "requestFinished", status: 302, error: null },
  ];
  const events = messages.map((message, i) => ({ eventStart: null, eventEnd: i, severity: "info", message }));
  const file = traceFileText(events, true);
  for (const secret of ["planted-authorization", "planted-nested", "planted-in-location"])
    assert.ok(file.includes(secret));
  for (const format of ["html", "har", "curl"]) {
    const { code, stdout } = await invoke(["trace", "export", "--format", format, "-"], file);
    assert.equal(code, 0);
    assert.match(stdout, /shop\.example/);
    assert.doesNotMatch(stdout, /planted/, format);
  }
});

test("export: a format is needed, and a request", async () => {
  const error = async (argv: readonly string[], input = FILE) => {
    const { code, stderr } = await invoke(["trace", "export", ...argv], input);
    return `${code} ${stderr}`;
  };
  assert.match(await error(["-"]), /^2 Error: export needs --format, one of html, har, curl\n/);
  assert.match(await error(["-", "--format", "pdf"]), /^2 Error: format "pdf" not supported; one of html, har, curl\n/);
  assert.match(
    await error(["-", "--format", "curl"], '{"message":{"type":"requestStarted","protocol":"tcp"}}\n'),
    /^1 Error: the trace in standard input has no request that curl could show\nWhy: .*\nTry: /,
  );
});

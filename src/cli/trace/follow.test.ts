import assert from "node:assert/strict";
import { PassThrough } from "node:stream";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { printFollowed } from "./follow.ts";
import type { FollowedOutput } from "./followed.ts";
import { type TraceRecord, toRecord } from "./source.ts";

const TIME = "2026-02-03T04:05:06.789Z";

function event(request: number | null, type: string, fields: object = {}): TraceRecord {
  return toRecord(
    JSON.stringify({ request, eventStart: null, eventEnd: 2000, severity: "info", message: { type, ...fields } }),
  );
}

const started = (request: number, path: string): TraceRecord =>
  event(request, "requestSnapshot", {
    stage: "initial request",
    requestState: { request: { method: "GET", uri: `http://a.test${path}`, startTime: TIME } },
  });
const finished = (request: number): TraceRecord => event(request, "requestFinished", { status: 200, error: null });
const ended = (): TraceRecord => event(null, "followEnded", { reason: "time", requests: 1, unfinished: 0 });

/** What a pod streams. */
const from = (pod: string | undefined, ...records: readonly (TraceRecord | Error)[]): FollowedOutput[] =>
  records.map((record) => (record instanceof Error ? { pod, error: record } : { pod, record }));

async function* stream(...output: readonly FollowedOutput[]): AsyncGenerator<FollowedOutput> {
  yield* output;
}

async function print(
  output: readonly FollowedOutput[],
  options: { readonly count?: number; readonly json?: boolean } = {},
) {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  const context = {
    stdin: new PassThrough(),
    stdout,
    stderr,
    env: {},
    json: false,
    signal: new AbortController().signal,
  };
  const done = printFollowed(stream(...output), { count: 20, json: false, ...options }, context).then(
    () => undefined,
    (error: unknown) => error,
  );
  void done.then(() => [stdout, stderr].map((each) => each.end()));
  const [out, err, failure] = await Promise.all([text(stdout), text(stderr), done]);
  return { out, err, failure };
}

test("a request that continues at the end is shown as far as it has come", async () => {
  const { out } = await print(from(undefined, started(1, "/a"), ended()));
  assert.equal(out, "04:05:06.789  #1  GET http://a.test/a → still running after 2 ms\n");
});

test("a request whose end was dropped is shown when that is known, and not as one that continues", async () => {
  const dropped = event(null, "dropped", { count: 3, requests: 2, ended: [1, 7] });
  const { out, err } = await print(from(undefined, started(1, "/a"), started(2, "/b"), dropped, finished(2), ended()));
  assert.deepEqual(out.split("\n"), [
    "04:05:06.789  #1  GET http://a.test/a → end not seen after 2 ms",
    "04:05:06.789  #2  GET http://a.test/b → 200 in 2 ms",
    "",
  ]);
  assert.match(err, /3 events are missing/);
});

test("messages have a line of their own while their stream is open", async () => {
  const none = { messages: 0, bytes: 0 };
  const { out } = await print(
    from(
      undefined,
      started(1, "/chat"),
      event(1, "streamMessage", { direction: "received", number: 1, bytes: 5, opcode: "text", body: "aGVsbG8=" }),
      event(1, "streamMessage", { direction: "sent", number: 7, bytes: 90, compressed: true }),
      event(1, "streamMessage", { direction: "sent", number: 8, bytes: 2, opcode: "close", closeCode: 1000 }),
      event(1, "messagesOmitted", { received: none, sent: { messages: 40, bytes: 1000 } }),
      event(1, "messagesUnreadable", { direction: "sent", reason: "a frame has reserved bits" }),
      ended(),
    ),
  );
  const lines = [
    "received 1: text, 5 B: hello",
    "sent 7: 90 B, compressed",
    "sent 8: close 1000, 2 B",
    "too many to show: 0 (0 B) received, 40 (1000 B) sent",
    "what was sent is not readable: a frame has reserved bits",
  ].map((line) => `04:05:06.789  #1  after 2 ms: ${line}`);
  const first = "04:05:06.789  #1  GET http://a.test/chat → streaming";
  assert.deepEqual(out.split("\n"), [
    first,
    ...lines,
    "04:05:06.789  #1  GET http://a.test/chat → still running after 2 ms",
    "",
  ]);
});

test("requests of a pod whose stream breaks have no end, those of others go on", async () => {
  const { out } = await print([
    ...from("web-1", started(1, "/a")),
    ...from("web-11", started(1, "/b")),
    ...from("web-1", new Error("connection lost")),
    ...from("web-11", finished(1), ended()),
  ]);
  assert.deepEqual(
    out
      .trimEnd()
      .split("\n")
      .map((line) => line.slice(line.indexOf("#"))),
    ["#1  web-1  GET http://a.test/a → end not seen after 2 ms", "#2  web-11  GET http://a.test/b → 200 in 2 ms"],
  );
});

test("once the count is reached, a pod whose stream breaks is not waited for", async () => {
  const { err } = await print(
    [
      ...from("web-1", started(1, "/a")),
      ...from("web-1", new Error("connection lost")),
      ...from("web-2", new Error("still read")),
    ],
    { count: 1 },
  );
  assert.equal(err, "web-1: connection lost\n1 request followed\n");
});

test("requests of several pods have one numbering, and together the count that was asked for", async () => {
  const pods = () => [
    ...from("web-1", started(1, "/a")),
    ...from("web-2", started(1, "/b"), finished(1)),
    ...from("web-1", finished(1), started(2, "/c")),
    ...from("web-2", started(2, "/d"), finished(2)),
    ...from("web-1", finished(2), ended()),
    ...from("web-2", ended()),
  ];
  const { out, failure } = await print(pods(), { count: 3 });
  const lines = out.trimEnd().split("\n");
  assert.deepEqual(
    lines.map((line) => /#(\d) {2}(web-\d) /.exec(line)?.slice(1).join(" ")),
    ["2 web-2", "1 web-1", "3 web-1"],
  );
  assert.equal(failure, undefined);
  const { out: json } = await print(pods(), { json: true });
  const { pod, request, message } = JSON.parse(json.split("\n")[1] ?? "") as Record<string, unknown>;
  assert.deepEqual([pod, request, (message as { type: string }).type], ["web-2", 2, "requestSnapshot"]);
});

test("what is missing is said: lost events, a dead worker, a stream that breaks or ends early", async () => {
  const lost = event(null, "dropped", { count: 7, requests: 2 });
  const died = event(null, "workerDied", { worker: "worker-1", unfinished: 0, held: true });
  const gone = event(null, "followEnded", { reason: "shutdown", requests: 1, unfinished: 0 });
  const said = await print(from("web-1", lost, died, gone));
  assert.match(
    said.err,
    /^web-1: 7 events are missing, also the last ones of 2 requests: they were not read in time\n/,
  );
  assert.match(said.err, /web-1: worker-1 has died; requests that it held for --where are missing/);
  assert.match(said.err, /web-1: the gateway has shut down\n/);
  assert.equal(said.failure, undefined);
  const broken = await print([
    ...from("web-1", new Error("connection reset")),
    ...from("web-2", started(1, "/b"), finished(1), ended()),
  ]);
  assert.match(broken.err, /^web-1: connection reset\n/);
  assert.match(broken.out, /web-2 {2}GET/, "the others go on");
  assert.equal(broken.failure, undefined);
  const one = await print(from(undefined, started(1, "/a"), finished(1), new Error("connection reset")));
  assert.match(one.out, /GET/);
  assert.match(String(one.failure), /connection reset/);
  for (const records of [[], [gone]]) {
    const early = await print(from(undefined, started(1, "/a"), finished(1), ...records));
    assert.match(String(early.failure), /the stream ended early/);
  }
});

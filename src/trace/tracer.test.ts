import assert from "node:assert/strict";
import { test } from "node:test";
import { BodyCapture } from "./body-capture.ts";
import type { TraceEvent } from "./events.ts";
import { allSinks, severityOf, Tracer } from "./tracer.ts";

test("events are sent at once, in order, with times in whole microseconds that never decrease", () => {
  const sent: (string | undefined)[] = [];
  const tracer = new Tracer({ reveal: false, maxBodyBytes: 0 }, performance.now(), (event) => sent.push(event?.json));
  tracer.emit("info", { type: "requestStarted" });
  assert.equal(sent.length, 1);
  const start = tracer.now();
  tracer.emit("error", { type: "backendCallResult", status: null, error: "refused" }, start);
  tracer.finish();
  assert.equal(sent.pop(), undefined);
  const [first, second] = sent.map((json) => JSON.parse(json ?? "") as TraceEvent);
  assert.equal(first?.eventStart, null);
  assert.equal(second?.eventStart, start);
  assert.ok(Number.isInteger(first?.eventEnd) && Number(second?.eventEnd) >= start && start >= Number(first?.eventEnd));
  assert.deepEqual(Object.keys(first ?? {}), ["eventStart", "eventEnd", "severity", "message"]);
});

test("a clock that starts in the future does not give negative times", () => {
  const tracer = new Tracer({ reveal: false, maxBodyBytes: 0 }, performance.now() + 1000, () => {});
  assert.equal(tracer.now(), 0);
});

test("of several readers of one request, each gets messages only if it wants them, and as much of them as it wants", () => {
  const seen: unknown[][] = [[], [], [], []];
  const sinks = [{ maxBodyBytes: 9 }, ...[0, 2, 9].map((maxBodyBytes) => ({ maxBodyBytes, messages: true }))].map(
    (options, reader) =>
      new Tracer({ reveal: false, ...options }, performance.now(), (event) =>
        seen[reader]?.push((JSON.parse(event?.json ?? "") as TraceEvent).message),
      ),
  );
  const [first, ...others] = sinks;
  assert.ok(first !== undefined);
  const message = { type: "streamMessage", direction: "sent", number: 1, bytes: 8 } as const;
  const body = (text: string) => ({ body: Buffer.from(text).toString("base64") });
  const all = allSinks(first, ...others);
  assert.deepEqual([all.options.messages, all.options.maxBodyBytes], [true, 9]);
  all.emit("info", { ...message, ...body("abcd"), truncated: true });
  all.emit("info", { ...message, ...body("ab") });
  assert.deepEqual(seen, [
    [],
    [message, message],
    [
      { ...message, ...body("ab"), truncated: true },
      { ...message, ...body("ab") },
    ],
    [
      { ...message, ...body("abcd"), truncated: true },
      { ...message, ...body("ab") },
    ],
  ]);
});

test("severity of an outcome", () => {
  assert.equal(severityOf(200, null), "info");
  assert.equal(severityOf(399, null), "info");
  assert.equal(severityOf(404, null), "warn");
  assert.equal(severityOf(500, null), "error");
  assert.equal(severityOf(200, "broke off"), "error");
  assert.equal(severityOf(null, null), "info");
});

test("a capture keeps the beginning of a body, its own copy, and says when there was more", () => {
  const capture = new BodyCapture(5);
  const chunk = Buffer.from("..abc..");
  capture.add(chunk, 2, 5);
  chunk.fill(0);
  assert.equal(capture.truncated, false);
  capture.add(Buffer.from("de"), 0, 2);
  assert.equal(capture.truncated, false, "exactly full");
  capture.add(Buffer.from("f"), 0, 1);
  assert.equal(capture.truncated, true);
  assert.equal(Buffer.from(capture.base64(), "base64").toString(), "abcde");
});

test("a capture with limit 0 has no room", () => {
  const capture = new BodyCapture(0);
  capture.add(Buffer.from("x"), 0, 1);
  assert.equal(capture.base64(), "");
  assert.equal(capture.truncated, true);
});

import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { TraceMessage } from "../../trace/events.ts";
import { StreamMessages } from "./stream-messages.ts";

/** A WebSocket that is open, and what its trace says. */
function webSocket(context: TestContext) {
  context.mock.timers.enable({ apis: ["setTimeout"] });
  const seen: TraceMessage[] = [];
  const sink = {
    options: { reveal: false, maxBodyBytes: 0, messages: true },
    snapshots: true,
    now: () => 0,
    emit: (_severity: unknown, message: TraceMessage) => seen.push(message),
    evaluated: () => {},
    finish: () => {},
  };
  const messages = new StreamMessages(sink, {
    request: { headers: [] },
    downstream: { upgrade: "WebSocket" },
    responseSide: { tunnel: true, head: undefined },
  });
  /** Direction and number of each message since the last call, other events as they are. */
  const shown = () =>
    seen.splice(0).map((each) => (each.type === "streamMessage" ? `${each.direction} ${each.number}` : each));
  const pass = (ms: number) => context.mock.timers.tick(ms);
  return { messages, shown, pass };
}

const FROM_CLIENT = Buffer.of(0x82, 0x83, 0, 0, 0, 0, 1, 2, 3);
const TO_CLIENT = Buffer.of(0x82, 3, 1, 2, 3);

test("of more than 50 messages in a second, the others are counted when it is over, while the stream goes on", (t) => {
  const { messages, shown, pass } = webSocket(t);
  for (let i = 0; i < 49; i++) messages.received(FROM_CLIENT);
  for (let i = 0; i < 3; i++) messages.sent(TO_CLIENT);
  messages.received(FROM_CLIENT);
  assert.deepEqual(shown().slice(-2), ["received 49", "sent 1"]);
  pass(999);
  assert.deepEqual(shown(), []);
  pass(1);
  const omitted = { received: { messages: 1, bytes: 3 }, sent: { messages: 2, bytes: 6 } };
  assert.deepEqual(shown(), [{ type: "messagesOmitted", ...omitted }]);
  messages.sent(TO_CLIENT);
  assert.deepEqual(shown(), ["sent 4"]);
  pass(1000);
  assert.deepEqual(shown(), [], "nothing was left out");
});

test("the end of the stream counts what was left out until then", (t) => {
  const { messages, shown, pass } = webSocket(t);
  for (let i = 0; i < 60; i++) messages.sent(TO_CLIENT);
  messages.end();
  const none = { messages: 0, bytes: 0 };
  const omitted = { type: "messagesOmitted", received: none, sent: { messages: 10, bytes: 30 } };
  assert.deepEqual(shown().slice(50), [omitted]);
  pass(5000);
  assert.deepEqual(shown(), []);
});

test("bytes that are no frames end one direction, once; the other goes on", (t) => {
  const { messages, shown } = webSocket(t);
  messages.received(FROM_CLIENT);
  messages.received(TO_CLIENT);
  for (let i = 0; i < 3; i++) messages.received(FROM_CLIENT);
  messages.sent(TO_CLIENT);
  const reason = "a frame of the client is not masked";
  assert.deepEqual(shown(), ["received 1", { type: "messagesUnreadable", direction: "received", reason }, "sent 1"]);
});

import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { TraceMessage } from "../../trace/events.ts";
import type { TraceSink } from "../../trace/tracer.ts";
import { StreamProgress } from "./stream-progress.ts";

/** A stream whose clock the test sets, and what its trace says. */
class TestStream {
  time = 0;
  readonly messages: TraceMessage[] = [];
  readonly progress: StreamProgress;
  readonly #context: TestContext;

  constructor(context: TestContext) {
    this.#context = context;
    context.mock.timers.enable({ apis: ["setInterval"] });
    const sink: TraceSink = {
      options: { reveal: false, maxBodyBytes: 0 },
      snapshots: true,
      now: () => 0,
      emit: (_severity, message) => this.messages.push(message),
      evaluated: () => {},
      finish: () => {},
    };
    this.progress = new StreamProgress(sink, () => this.time);
    this.progress.begin();
  }

  pass(ms: number): void {
    for (let left = ms; left > 0; left -= 100) {
      this.time += 100;
      this.#context.mock.timers.tick(100);
    }
  }

  /** Idle times of the events since the last call. */
  idles(): string[] {
    return this.messages.splice(0).map((message) => (message.type === "streamProgress" ? message.idle : message.type));
  }
}

test("once a second while something moves, with the totals since the beginning", (t) => {
  const stream = new TestStream(t);
  stream.progress.received({ length: 10 });
  stream.progress.received({ length: 5 });
  stream.progress.sent({ length: 100 });
  stream.pass(999);
  stream.pass(100);
  assert.deepEqual(stream.messages.splice(0), [
    {
      type: "streamProgress",
      received: { chunks: 2, bytes: 15 },
      sent: { chunks: 1, bytes: 100 },
      idle: "1.000s",
      longestIdle: "1.000s",
    },
  ]);
  stream.pass(400);
  stream.progress.sent({ length: 1 });
  stream.pass(500);
  const [event] = stream.messages;
  assert.ok(event?.type === "streamProgress");
  assert.deepEqual(event.sent, { chunks: 2, bytes: 101 });
  assert.deepEqual([event.idle, event.longestIdle], ["0.500s", "1.500s"]);
});

test("silence is reported at growing intervals", (t) => {
  const stream = new TestStream(t);
  stream.pass(10_000);
  assert.deepEqual(stream.idles(), ["1.000s", "2.000s", "4.000s", "8.000s"]);
  stream.progress.sent({ length: 1 });
  stream.pass(2_000);
  assert.deepEqual(stream.idles(), ["1.000s", "2.000s"]);
});

test("the end of a long stream reports what it carried; that of a short one reports nothing", (t) => {
  const short = new TestStream(t);
  short.progress.sent({ length: 1 });
  short.pass(900);
  short.progress.end();
  short.pass(5000);
  assert.deepEqual(short.idles(), []);
  t.mock.timers.reset();
  const long = new TestStream(t);
  long.progress.sent({ length: 1 });
  long.pass(1000);
  long.progress.sent({ length: 1 });
  long.progress.end();
  long.pass(5000);
  assert.deepEqual(long.idles(), ["1.000s", "0.000s"]);
});

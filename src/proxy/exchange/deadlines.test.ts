import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../../test/helpers/property.ts";
import { type Milliseconds, ms } from "../../base/durations.ts";
import { GatewayError } from "../../base/errors.ts";
import type { HeaderList } from "../../http/message/message.ts";
import { Deadlines, formatGrpcTimeout, parseGrpcTimeout } from "./deadlines.ts";

/** Warnings of Node.js, which writes each kind once. */
const warnings: string[] = [];
process.on("warning", ({ message }) => warnings.push(message));

/** The deadlines of a gRPC call that arrived `age` ms ago; `passed` is called with the error that ends it. */
function deadlinesOf(headers: HeaderList, age: number, passed: (error: GatewayError) => void = () => {}): Deadlines {
  const startedAt = performance.now() - age;
  const policyState = { requestTimeout: 0 };
  const deadlines = new Deadlines({ request: { headers }, startedAt, policyState, call: undefined, endPhase: passed });
  deadlines.startGrpc();
  return deadlines;
}

test("requestTimeout counts from the start of the request, also where the timer starts again after a response", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const events: string[] = [];
  const deadlines = new Deadlines({
    request: { headers: [] },
    startedAt: performance.now() - 10_000,
    policyState: { requestTimeout: 60_000 },
    call: { attemptTimeout: ms(0), expireAttempt() {}, expire: () => void events.push("expired") },
    endPhase: ({ code }) => void events.push(code),
  });
  deadlines.start();
  deadlines.stop();
  t.mock.timers.tick(50_000);
  deadlines.start();
  deadlines.start();
  t.mock.timers.tick(50_000);
  assert.deepEqual(events, ["expired", "TG_REQUEST_TIMEOUT"]);
});

test("a silent backend: the deadlines pass one after another, the earliest first", () => {
  const events: string[] = [];
  const call = {
    attemptTimeout: 4000,
    expireAttempt: () => void events.push("attempt"),
    expire: () => void events.push("call"),
  };
  const deadlines = (requestTimeout: number, attemptTimeout: Milliseconds) =>
    new Deadlines({
      request: { headers: [] },
      startedAt: performance.now(),
      policyState: { requestTimeout },
      call: { ...call, attemptTimeout },
      endPhase: ({ code }) => void events.push(code),
    });
  const both = deadlines(10_000, ms(4000));
  for (let i = 0; i < 3; i++) assert.equal(both.skip(), true);
  assert.deepEqual(events.splice(0), ["attempt", "attempt", "call", "TG_REQUEST_TIMEOUT"]);
  const unlimited = deadlines(0, ms(4000));
  for (let i = 0; i < 3; i++) assert.equal(unlimited.skip(), true);
  assert.deepEqual(events.splice(0), ["attempt", "attempt", "attempt"]);
  assert.equal(deadlines(0, ms(0)).skip(), false);
  assert.deepEqual(events, []);
});

/** The field that the backend gets for a call that arrived `age` ms ago. */
function forwarded(timeout: string, age: number): string | undefined {
  const headers = ["x-a", "1", "grpc-timeout", timeout];
  const deadlines = deadlinesOf(headers, age);
  deadlines.forwardGrpc();
  deadlines.close();
  return headers[3];
}

test("an unused deadline is forwarded unchanged", () => {
  // A clock that is ahead counts as no time used.
  for (const timeout of ["10S", "500u", "0S", "99999999H"]) assert.equal(forwarded(timeout, -60_000), timeout);
});

test("otherwise the rest is forwarded, never more than the client's value and never less than 1 ms", () => {
  for (const [timeout, age, most] of [
    ["10S", 4000, 6000],
    ["1H", 600_000, 3_000_000],
    ["10m", 60_000, 1],
  ] as const) {
    const text = forwarded(timeout, age);
    const left = Number(/^(\d+)m$/.exec(text ?? "")?.[1]);
    assert.ok(left >= 1 && left <= most, `${timeout} after ${age} ms: ${text}`);
  }
});

test("a deadline beyond the range of a timer does not pass at once", async () => {
  let passed = false;
  const deadlines = deadlinesOf(["grpc-timeout", "99999999H"], 0, () => {
    passed = true;
  });
  // Node.js would run such a timer after 1 ms.
  await new Promise((resolve) => setTimeout(resolve, 2));
  deadlines.close();
  assert.equal(passed, false);
});

test("a deadline that has passed before the call is handled passes at once, without a warning", async () => {
  const { code } = await new Promise<GatewayError>((passed) => {
    deadlinesOf(["grpc-timeout", "1m"], 1000, passed);
  });
  assert.equal(code, "TG_DEADLINE_EXCEEDED");
  assert.deepEqual(warnings, []);
});

test("two deadlines are rejected like a malformed one", () => {
  for (const headers of [
    ["grpc-timeout", "1S", "grpc-timeout", "1S"],
    ["grpc-timeout", "1.5S"],
  ])
    assert.throws(() => deadlinesOf(headers, 0), GatewayError);
});

test("each unit is read as milliseconds", () => {
  const texts = ["1H", "2M", "3S", "4m", "5000u", "6000000n", "0S", "99999999H"];
  assert.deepEqual(texts.map(parseGrpcTimeout), [3_600_000, 120_000, 3000, 4, 5, 6, 0, 99_999_999 * 3_600_000]);
});

test("everything else is malformed", () => {
  for (const text of ["", "1", "S", "1s", "1h", "-1S", "+1S", " 1S", "1S ", "1.5S", "123456789m", "1SS", "1m, 1m"])
    assert.equal(parseGrpcTimeout(text), undefined, text);
});

test("written timeouts can be read, and are never longer than the original", () => {
  fc.assert(
    fc.property(fc.double({ min: 1, max: 1e13, noNaN: true }), (milliseconds) => {
      const read = parseGrpcTimeout(formatGrpcTimeout(milliseconds)) ?? 0;
      const precision = milliseconds <= 99_999_999 ? 1 : 1000;
      assert.ok(read <= milliseconds && (read > milliseconds - precision || read === 99_999_999_000));
    }),
  );
  assert.equal(formatGrpcTimeout(0.2), "1m");
});

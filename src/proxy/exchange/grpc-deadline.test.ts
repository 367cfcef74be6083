import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../../test/helpers/property.ts";
import { GatewayError } from "../../base/errors.ts";
import { formatGrpcTimeout, GrpcDeadline, parseGrpcTimeout } from "./grpc-deadline.ts";

/** Warnings of Node.js, which writes each kind once. */
const warnings: string[] = [];
process.on("warning", ({ message }) => warnings.push(message));

/** The field that the backend gets for a call that arrived `age` ms ago. */
function forwarded(timeout: string, age: number): string | undefined {
  const headers = ["x-a", "1", "grpc-timeout", timeout];
  const deadline = GrpcDeadline.of(headers, performance.now() - age, () => {});
  deadline?.forward(headers);
  deadline?.stop();
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
  const deadline = GrpcDeadline.of(["grpc-timeout", "99999999H"], performance.now(), () => {
    passed = true;
  });
  // Node.js would run such a timer after 1 ms.
  await new Promise((resolve) => setTimeout(resolve, 2));
  deadline?.stop();
  assert.equal(passed, false);
});

test("a deadline that has passed before the call is handled passes at once, without a warning", async () => {
  await new Promise<void>((passed) => {
    GrpcDeadline.of(["grpc-timeout", "1m"], performance.now() - 1000, passed);
  });
  assert.deepEqual(warnings, []);
});

test("two deadlines are rejected like a malformed one", () => {
  for (const headers of [
    ["grpc-timeout", "1S", "grpc-timeout", "1S"],
    ["grpc-timeout", "1.5S"],
  ])
    assert.throws(() => GrpcDeadline.of(headers, 0, () => {}), GatewayError);
  assert.equal(
    GrpcDeadline.of([], 0, () => {}),
    undefined,
  );
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

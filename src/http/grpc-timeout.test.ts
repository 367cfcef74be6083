import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../test/helpers/property.ts";
import { formatGrpcTimeout, parseGrpcTimeout } from "./grpc-timeout.ts";

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

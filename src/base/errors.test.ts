import assert from "node:assert/strict";
import { test } from "node:test";
import { ERRORS, type ErrorCode, GatewayError } from "./errors.ts";

test("the response to a client contains neither the detail nor the cause of an error", () => {
  for (const code of Object.keys(ERRORS) as ErrorCode[]) {
    const error = new GatewayError(code, "10.0.0.1:8080", new Error("10.0.0.1:8080"), {
      headers: ["retry-after", "1"],
    });
    assert.deepEqual(error.answer, { code, status: ERRORS[code].status, headers: ["retry-after", "1"] });
    assert.match(error.message, /: 10\.0\.0\.1:8080$/);
  }
});

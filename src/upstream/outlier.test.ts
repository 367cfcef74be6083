import assert from "node:assert/strict";
import { test } from "node:test";
import { type Activation, STANDARD_ENVIRONMENT } from "../cel/index.ts";
import { OutlierDetector } from "./outlier.ts";

test("an unhealthyExpression that fails counts as none: clients must not be able to evict endpoints", () => {
  const rule = new OutlierDetector(
    {
      unhealthyExpression: 'json(request.headers["x"]).broken || response.code == 418',
    },
    STANDARD_ENVIRONMENT,
  );
  const outcome = (x: string, status: number): boolean => {
    const response = { status, reason: "", headers: [] };
    const judged = {
      response: undefined as typeof response | undefined,
      trailers: [],
      get variables(): Activation {
        const request = { method: "GET", scheme: "http", authority: "a", path: "/", search: "", version: "HTTP/1.1" };
        return { request: { ...request, headers: ["x", x] }, ...(judged.response && { response: judged.response }) };
      },
    };
    return rule.classify(judged, response).healthy;
  };
  assert.equal(outcome('{"broken":false}', 200), true);
  assert.equal(outcome('{"broken":false}', 503), true);
  assert.equal(outcome('{"broken":true}', 200), false);
  assert.equal(outcome("{", 200), true, "failed, and the status is good");
  assert.equal(outcome("{", 503), false, "failed, and the status is not");
  assert.equal(outcome("{", 418), false, "one part is true");
  assert.equal(outcome("{}", 503), true, "absent");
});

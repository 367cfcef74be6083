import assert from "node:assert/strict";
import { test } from "node:test";
import { type Activation, STANDARD_ENVIRONMENT } from "../../cel/index.ts";
import { type OutcomeContext, OutlierDetector } from "./outlier.ts";

test("an unhealthyExpression that fails counts as none: clients must not be able to evict endpoints", () => {
  const rule = new OutlierDetector(
    {
      unhealthyExpression: 'json(request.headers["x"]).broken || response.code == 418',
    },
    STANDARD_ENVIRONMENT,
  );
  const outcome = (x: string, status: number): boolean => rule.classify(contextOf(x), responseOf(status)).healthy;
  assert.equal(outcome('{"broken":false}', 200), true);
  assert.equal(outcome('{"broken":false}', 503), true);
  assert.equal(outcome('{"broken":true}', 200), false);
  assert.equal(outcome("{", 200), true, "failed, and the status is good");
  assert.equal(outcome("{", 503), false, "failed, and the status is not");
  assert.equal(outcome("{", 418), false, "one part is true");
  assert.equal(outcome("{}", 503), true, "absent");
});

test("an unhealthyExpression that fails at the trailers leaves the decision to the status of gRPC", () => {
  const rule = new OutlierDetector({ unhealthyExpression: 'json(request.headers["x"]).broken' }, STANDARD_ENVIRONMENT);
  const outcome = (x: string, status: number, grpcStatus: string): boolean => {
    const context = contextOf(x);
    const call = rule.classify(context, responseOf(status, ["content-type", "application/grpc"]));
    rule.classifyTrailers(context, call, ["grpc-status", grpcStatus]);
    return call.healthy;
  };
  assert.equal(outcome('{"broken":false}', 200, "14"), true);
  assert.equal(outcome('{"broken":true}', 200, "0"), false);
  assert.equal(outcome("{", 200, "0"), true);
  assert.equal(outcome("{", 200, "14"), false);
  assert.equal(outcome("{", 503, "0"), false);
});

function responseOf(status: number, headers: string[] = []) {
  return { status, reason: "", headers };
}

/** The header `x` of the request is all that differs. */
function contextOf(x: string): OutcomeContext {
  const request = { method: "GET", scheme: "http", authority: "a", path: "/", search: "", version: "HTTP/1.1" };
  return {
    variablesWith: (response): Activation => ({ request: { ...request, headers: ["x", x] }, response }),
  };
}

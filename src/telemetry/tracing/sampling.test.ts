import assert from "node:assert/strict";
import { test } from "node:test";
import { STANDARD_ENVIRONMENT } from "../../cel/index.ts";
import type { Sampling } from "../settings.ts";
import { Sampler } from "./sampling.ts";

const request = {
  method: "GET",
  scheme: "http",
  authority: "a",
  path: "/",
  search: "",
  version: "HTTP/1.1",
  headers: ["x-share", "0.5"],
};

function wants(rule: Sampling, random = 0.5): boolean {
  const variables = (): { request: typeof request } => {
    assert.equal(typeof rule, "string", "only expressions need to know the request");
    return { request };
  };
  return new Sampler({ randomSampling: rule }, () => random, STANDARD_ENVIRONMENT).wants("random", variables);
}

test("by default, traces that clients began continue, and no others begin", () => {
  const sampler = new Sampler({}, () => 0, STANDARD_ENVIRONMENT);
  assert.deepEqual(
    (["client", "random"] as const).map((origin) => sampler.wants(origin, () => ({}))),
    [true, false],
  );
});

test("all, none, or a share", () => {
  assert.deepEqual([wants(true, 0.999), wants(false, 0), wants(1, 0.999), wants(0, 0)], [true, false, true, false]);
  assert.deepEqual([wants(0.25, 0.24), wants(0.25, 0.25)], [true, false]);
});

test("an expression returns a boolean or a share; if it fails or returns something else, nothing is sampled", () => {
  assert.equal(wants('request.method == "GET"'), true);
  assert.equal(wants('request.method == "POST"'), false);
  assert.equal(wants('double(request.headers["x-share"])', 0.49), true);
  assert.equal(wants('double(request.headers["x-share"])', 0.51), false);
  assert.equal(wants("1", 0.999), true);
  assert.equal(wants("2.5", 0.999), true);
  assert.equal(wants("-1", 0), false);
  assert.equal(wants('request.headers["x-none"] == ""', 0), false);
  assert.equal(wants('"true"', 0), false);
});

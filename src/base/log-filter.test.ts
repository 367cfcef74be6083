import assert from "node:assert/strict";
import { test } from "node:test";
import { parseLogFilter } from "./log-filter.ts";

test("the longest module that covers a target decides", () => {
  const filter = parseLogFilter("warn,request=off,proxy=info,proxy::match=trace");
  assert.equal(filter.enabled("warn", "config"), true);
  assert.equal(filter.enabled("info", "config"), false);
  assert.equal(filter.enabled("error", "request"), false);
  assert.equal(filter.enabled("info", "proxy::tcp"), true);
  assert.equal(filter.enabled("debug", "proxy::tcp"), false);
  assert.equal(filter.enabled("trace", "proxy::match"), true);
  assert.equal(filter.enabled("info", "proxyish"), false, "a module is not a mere text prefix");
});

test("the text is canonical and can be parsed again", () => {
  const filter = parseLogFilter(" request=off, DEBUG ,proxy=info");
  assert.equal(filter.toString(), "debug,request=off,proxy=info");
  assert.equal(parseLogFilter(filter.toString()).toString(), filter.toString());
  assert.equal(parseLogFilter("").toString(), "info");
});

test("directives are added to a filter and replace their like", () => {
  const filter = parseLogFilter("info,request=off");
  assert.equal(filter.with("error,request=info").toString(), "error,request=info");
  assert.equal(filter.toString(), "info,request=off");
});

test("invalid directives are rejected with a list of the levels", () => {
  assert.throws(() => parseLogFilter("loud"), /"loud" is not a level; expected one of off, error, warn/);
  assert.throws(() => parseLogFilter("info,proxy=loud"), /"proxy=loud": "loud" is not a level/);
  assert.throws(() => parseLogFilter("=info"), /"" is not a module name/);
  assert.throws(() => parseLogFilter("a b=info"), /"a b" is not a module name/);
  assert.throws(() => parseLogFilter("proxy:debug"), /not a level/);
  assert.throws(() => parseLogFilter(Array.from({ length: 300 }, (_, i) => `m${i}=info`).join(",")), /more than 200/);
});

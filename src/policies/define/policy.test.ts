import assert from "node:assert/strict";
import { test } from "node:test";
import { ms } from "../../base/durations.ts";
import { STANDARD_ENVIRONMENT } from "../../cel/index.ts";
import { checkPolicies } from "../compile.ts";
import { Decisions } from "../contract/decisions.ts";
import { PolicyError } from "../contract/policy-error.ts";
import { creatorOf } from "../testing/context.ts";
import { definePolicy } from "./policy.ts";

interface Config {
  readonly list: readonly string[];
}

const traits = {
  kind: "delay",
  phases: ["route"],
  decisions: new Decisions("delay", {}),
} as const;

const example = definePolicy({
  ...traits,
  prepare(config: Config) {
    for (const [i, text] of config.list.entries())
      if (text === "") throw PolicyError.at(["list", i], "is empty; remove it");
    return () => ({ onRequest: () => undefined });
  },
  redact: (config) => config,
});

type Definition = Parameters<typeof definePolicy<"delay", Config>>[0];

test("a kind without `redact` does not compile", () => {
  const compiles: Omit<Definition, "redact"> extends Definition ? true : false = false;
  assert.equal(compiles, false);
});

test("invalid settings are rejected without a data plane, with their path", () => {
  assert.throws(
    () => example.prepare({ list: ["a", ""] }, STANDARD_ENVIRONMENT),
    (error) => {
      assert.ok(error instanceof PolicyError);
      assert.deepEqual(error.problems, [{ path: ["delay", "list", 1], reason: "is empty; remove it" }]);
      assert.equal(error.message, "delay.list.1: is empty; remove it");
      return true;
    },
  );
  assert.ok(creatorOf(example)({ list: ["a"] }).onRequest);
});

test("of two levels the inner one wins, unless the kind combines them", () => {
  assert.deepEqual(example.merge({ list: ["outer"] }, { list: ["inner"] }), { list: ["inner"] });
  const adding = definePolicy({
    ...traits,
    prepare: (_config: Config) => () => ({}),
    redact: (config) => config,
    merge: (outer, inner) => ({ list: [...outer.list, ...inner.list] }),
  });
  assert.deepEqual(adding.merge({ list: ["outer"] }, { list: ["inner"] }), { list: ["outer", "inner"] });
});

test("all policies and all headers of a modifier are checked, keys at the key", () => {
  const set = {
    requestHeaderModifier: { set: { connection: "x", "a b": "y" }, remove: ["x-ok", "upgrade"] },
    timeout: { requestTimeout: ms(-1) },
    urlRewrite: {},
  };
  const places = checkPolicies(set, "route", STANDARD_ENVIRONMENT).map(({ path, key }) => [...path, key]);
  assert.deepEqual(places, [
    ["requestHeaderModifier", "set", "connection"],
    ["requestHeaderModifier", "set", "a b"],
    ["requestHeaderModifier", "remove", 1, undefined],
    ["timeout", "requestTimeout", undefined],
  ]);
});

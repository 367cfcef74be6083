import assert from "node:assert/strict";
import { test } from "node:test";
import { parseParameters } from "./parameters.ts";

function problemsOf(spec: unknown): readonly string[] {
  const parsed = parseParameters(spec);
  return parsed.ok ? [] : parsed.problems;
}

test("parameters are parsed as written, without defaults", () => {
  const spec = {
    workload: { kind: "DaemonSet" },
    rawConfig: { workerThreads: 2, logging: { format: "json" } },
    env: [{ name: "POD_IP", valueFrom: { fieldRef: { fieldPath: "status.podIP" } } }],
    shutdown: { min: 5 },
    deployment: { metadata: { labels: { team: "edge" } }, spec: { replicas: 3 } },
  };
  assert.deepEqual(parseParameters(spec), { ok: true, value: spec });
  assert.deepEqual(parseParameters(undefined), { ok: true, value: {} });
});

test("every problem is named with its path", () => {
  assert.deepEqual(problemsOf({ image: { tag: 1 }, logging: { levels: "info" }, shutdown: { min: 90 } }), [
    'spec.logging.levels: unknown field; did you mean "level"?',
    "spec.image.tag: is 1; expected a string in quotes",
    "spec.shutdown: min must not be greater than max",
  ]);
});

test("a log level that proxies would not start with is a problem", () => {
  const levels = (level: string) => problemsOf({ logging: { level } });
  assert.deepEqual(levels("info,request=off"), []);
  assert.match(levels("loud").join(), /^spec.logging.level: .*"loud" is not a level; expected one of off, error/);
});

test("rawConfig is checked as the proxies will check it", () => {
  assert.deepEqual(problemsOf({ rawConfig: { workerThread: 2 } }), [
    'spec.rawConfig.workerThread: unknown field; did you mean "workerThreads"?',
  ]);
});

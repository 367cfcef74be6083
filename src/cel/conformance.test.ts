import assert from "node:assert/strict";
import { test } from "node:test";
import { conformanceCases, knownFailures } from "./testing/cases.ts";
import { runCase } from "./testing/run-case.ts";

test("the language's conformance cases pass, but for those that are listed with their reason", (context) => {
  const cases = conformanceCases();
  const known = knownFailures();
  const reasons = new Map(known);
  const unexpected: string[] = [];
  let passed = 0;
  for (const item of cases) {
    const problem = runCase(item);
    if (problem === undefined) passed++;
    if (problem === undefined && reasons.has(item.name))
      unexpected.push(`${item.name} passes now; take it off the list`);
    if (problem !== undefined && !reasons.has(item.name)) unexpected.push(`${item.name}: ${item.expr}: ${problem}`);
  }
  context.diagnostic(`${passed} of ${cases.length} conformance cases pass`);
  for (const [reason, entries] of Map.groupBy(known, ([, why]) => why))
    context.diagnostic(`${entries.length} fail: ${reason}`);
  assert.deepEqual(unexpected, []);
  assert.deepEqual(
    [...reasons.keys()].filter((name) => !cases.some((item) => item.name === name)),
    [],
    "listed cases that the suite does not have",
  );
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { formatType } from "../environment/types.ts";
import { type CelValue, STANDARD_ENVIRONMENT } from "../index.ts";
import { REQUEST } from "../testing/evaluate.ts";
import { type LargeCall, largeCalls } from "../testing/large-calls.ts";
import { Budget, endBudget, startBudget } from "../values/budget.ts";

const SIZE = 2000;
/** Every step stands for at most this many characters, bytes or elements. */
const PER_STEP = 8;
/** Functions whose work does not depend on the size of their arguments, with the reason. */
const CONSTANT: Readonly<Record<string, string>> = {
  "_&&_": "never called",
  "_||_": "never called",
  "_?_:_": "never called",
  "!_": "takes no data",
  "_[_]": "looks up one element; a text is charged as a key",
  "_[?_]": "looks up one element; a text is charged as a key",
  bytes: "of bytes: returns its argument",
  dyn: "returns its argument",
  type: "looks at the kind",
  string: "of text: returns its argument",
  int: "looks at 21 characters",
  uint: "looks at 21 characters",
  bool: "looks at 6 characters",
  size: "of bytes and lists: their length",
  ip: "looks at 60 characters",
  "ip.isCanonical": "looks at 60 characters",
  isIP: "looks at 60 characters",
  isCIDR: "looks at 64 characters",
  cidr: "looks at 64 characters",
  containsIP: "looks at 60 characters",
  containsCIDR: "looks at 64 characters",
  timestamp: "looks at 35 characters",
  duration: "looks at 256 characters",
  first: "one element",
  last: "one element",
  unredacted: "returns what is there",
  redacted: "a view of the same fields",
  raw: "a view of the same fields",
  fail: "the message is there",
  "optional.of": "wraps its argument",
  "optional.ofNonZeroValue": "looks at the length",
  hasValue: "looks for a value",
  value: "returns what is there",
  or: "chooses one argument",
  orValue: "chooses one argument",
};

/** Why the size of this argument does not matter; undefined if it does. */
function whyFree({ overload: { name, params }, position }: LargeCall): string | undefined {
  const type = params[position]?.name;
  const ofMap = params[0]?.name === "map";
  if (name === "size" || name === "optional.ofNonZeroValue")
    return type === "map" || type === "A" ? undefined : CONSTANT[name];
  if (CONSTANT[name] !== undefined) return type === "A" && /^_\[/.test(name) ? undefined : CONSTANT[name];
  if (name.startsWith("get")) return "names of zones have at most 64 characters";
  if (/^(?:starts|ends)With$|^strip/.test(name) && position === 0) return "as many characters as the other has";
  if (/^_(?:[<>]=?|[=!]=)_$/.test(name)) return "the shorter one decides, see below";
  if (name === "format" && position === 1) return "values without a verb are not read";
  if (name === "matches" || name === "regexReplace") return position === 1 ? "at most 1024 characters" : undefined;
  if (name === "replace" && position === 2) return "as often as it is inserted";
  if (/^sets\.(?:contains|equivalent)$/.test(name) && position === 1) return "ends with the first that is missing";
  if (name === "slice") return "as many elements as are taken";
  if (name.startsWith("math.bit")) return "at most 32 bytes";
  if (/^(?:math\.)?(?:max|min|greatest|least)$/.test(name)) return type === "list" ? undefined : "a number";
  if (/^(?:replace|split|indexOf|lastIndexOf)$/.test(name) && position > 0) return "longer than the text";
  if (name === "contains" && position === 1 && !ofMap) return "longer than the text, or compared with the elements";
  if ((name === "contains" || name === "split" || name === "join") && ofMap && position === 0)
    return "one name, or a view of the fields";
  if (name === "@in")
    return position === 1 && type === "map"
      ? "one name"
      : position === 0 && params[1]?.name === "list"
        ? "compared with the elements"
        : undefined;
  return undefined;
}

/** A failure on the way, such as for text that is not base64, counts as a result. */
function stepsOf({ overload, args }: LargeCall): number {
  const budget = new Budget(10_000_000);
  const before = budget.steps;
  startBudget(budget);
  try {
    overload.run(...args);
  } finally {
    endBudget();
  }
  return before - budget.steps;
}

test("every function is charged for the size of what it reads, at least for some content", () => {
  const most = new Map<string, number>();
  for (const call of largeCalls(SIZE)) {
    if (whyFree(call) !== undefined) continue;
    const { name, params } = call.overload;
    const key = `${name}(${params.map(formatType).join(", ")}) ${call.position}`;
    most.set(key, Math.max(most.get(key) ?? 0, stepsOf(call)));
  }
  assert.ok(most.size > 80, `${most.size} arguments`);
  assert.deepEqual(
    [...most].filter(([, steps]) => steps < SIZE / PER_STEP),
    [],
  );
});

test("comparisons and parts of two large values are charged for their size", () => {
  const budget = new Budget(10_000_000);
  for (const text of [
    "a == b",
    "a != b",
    "a < b",
    "a >= b",
    "a.startsWith(b)",
    "a.endsWith(b)",
    "a.contains(b)",
    "a.replace('x', b)",
    "[a, 'x'].exists(e, e == b)",
    "a in [b]",
    "bytes(a) == bytes(b)",
    "a.split('') == b.split('')",
    `json('["' + a + '"]') == json('["' + b + '"]')`,
  ]) {
    const before = budget.steps;
    const value = "1".repeat(SIZE);
    const body = `cel.bind(a, default(metadata.a, ""), cel.bind(b, default(metadata.b, ""), dyn(${text})))`;
    STANDARD_ENVIRONMENT.compileExpression(body, "request").evaluate({ metadata: { a: value, b: `${value}` }, budget });
    assert.ok(before - budget.steps >= SIZE / PER_STEP, `${text}: ${before - budget.steps}`);
  }
});

test("texts that made functions work for seconds are read or rejected in linear time", () => {
  const digits = "1".repeat(60_000);
  const spaces = `${"x".repeat(10)}${" ".repeat(60_000)}x`;
  const budget = new Budget(10_000);
  const evaluate = (text: string, metadata: unknown): CelValue =>
    STANDARD_ENVIRONMENT.compileExpression(text, "request").evaluate({ metadata, budget });
  assert.throws(() => evaluate("duration(metadata)", digits), /is not a duration/);
  assert.equal(evaluate("double(metadata) > 1.0", `${digits}.`), true);
  assert.throws(() => evaluate("double(metadata)", `${digits}x`), /is not a number/);
  const request = { ...REQUEST, headers: ["cookie", `a=${spaces}; b=2`] };
  const cookie = STANDARD_ENVIRONMENT.compileExpression('request.headers.cookie("b") == "2"', "request");
  assert.equal(cookie.evaluate({ request, budget }), true);
});

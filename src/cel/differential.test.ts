import assert from "node:assert/strict";
import { test } from "node:test";
import { Environment } from "@marcbachmann/cel-js";
import { fc } from "../../test/helpers/property.ts";
import { CelError, STANDARD_ENVIRONMENT as cel, toJson } from "./index.ts";

/** Another implementation of the language. Where the two disagree, one of them is wrong, or the language leaves it open. */
const other = new Environment({ homogeneousAggregateLiterals: false }).registerVariable("jwt", "dyn");
const JWT = { sub: "alice", age: 42.5, admin: true, groups: ["dev", "ops"], nested: { level: "3" } };

type Typed = Record<"int" | "bool" | "string" | "list", string>;

const typed = fc.letrec<Typed>((tie) => {
  const [int, bool, string, list] = [tie("int"), tie("bool"), tie("string"), tie("list")];
  const binary = (a: fc.Arbitrary<string>, signs: readonly string[]): fc.Arbitrary<string> =>
    fc.tuple(a, fc.constantFrom(...signs), a).map(([x, sign, y]) => `(${x} ${sign} ${y})`);
  const ternary = (a: fc.Arbitrary<string>): fc.Arbitrary<string> =>
    fc.tuple(bool, a, a).map(([condition, x, y]) => `(${condition} ? ${x} : ${y})`);
  const macro = (name: string, body: fc.Arbitrary<string>): fc.Arbitrary<string> =>
    fc.tuple(list, body).map(([range, inner]) => `${range}.${name}(x, ${inner})`);
  return {
    int: fc.oneof(
      { depthSize: "small", maxDepth: 4 },
      fc.constantFrom("0", "1", "-7", "9223372036854775807", "x"),
      binary(int, ["+", "-", "*", "/", "%"]),
      string.map((text) => `size(${text})`),
      list.map((items) => `${items}.size()`),
      ternary(int),
    ),
    bool: fc.oneof(
      { depthSize: "small", maxDepth: 4 },
      fc.constantFrom("true", "false", "jwt.admin", "has(jwt.sub)", "has(jwt.nope)"),
      binary(int, ["==", "!=", "<", "<=", ">", ">="]),
      binary(string, ["==", "!=", "<", ">="]),
      binary(bool, ["&&", "||"]),
      bool.map((value) => `!(${value})`),
      fc
        .tuple(string, fc.constantFrom("startsWith", "endsWith", "contains"), string)
        .map(([a, f, b]) => `${a}.${f}(${b})`),
      fc.tuple(int, list).map(([item, items]) => `(${item} in ${items})`),
      fc.constantFrom("all", "exists", "exists_one").chain((name) => macro(name, bool)),
    ),
    string: fc.oneof(
      { depthSize: "small", maxDepth: 4 },
      fc.constantFrom('""', '"a"', '"ab\\n"', '"é€"', "'it''s'".replace("''", "\\'"), "jwt.sub"),
      binary(string, ["+"]),
      int.map((value) => `string(${value})`),
      ternary(string),
    ),
    list: fc.oneof(
      { depthSize: "small", maxDepth: 4 },
      fc.array(int, { minLength: 1, maxLength: 3 }).map((items) => `[${items.join(", ")}]`),
      binary(list, ["+"]),
      macro("map", int),
      macro("filter", bool),
    ),
  };
});

type Outcome = { readonly value: unknown } | "error" | "too long";

function own(text: string): Outcome {
  try {
    return { value: toJson(cel.compileExpression(text, "request").evaluate({ jwt: JWT })) };
  } catch (error) {
    // Only this implementation rejects expressions that could run for long.
    const isLong = error instanceof CelError && /^more than|^nested deeper/.test(error.message);
    return isLong ? "too long" : "error";
  }
}

function others(text: string): Outcome {
  try {
    return { value: plain(other.evaluate(text, { jwt: JWT })) };
  } catch {
    return "error";
  }
}

/** Like toJson: integers beyond 2^53 are texts. */
function plain(value: unknown): unknown {
  if (typeof value === "bigint") return Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
  return Array.isArray(value) ? value.map(plain) : value;
}

test("another implementation returns the same values", () => {
  let compared = 0;
  const bound = fc.oneof(typed.bool, typed.string, typed.int, typed.list).map((text) => `[3].map(x, ${text})[0]`);
  const property = fc.property(bound, (text) => {
    const [mine, theirs] = [own(text), others(text)];
    fc.pre(text.length <= 1000 && mine !== "too long");
    if (theirs !== "error") compared++;
    assert.deepEqual(mine, theirs, text);
  });
  fc.assert(property, { numRuns: 1500 });
  assert.ok(compared > 1000, "enough of the expressions have values");
});

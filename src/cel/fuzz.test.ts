import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../test/helpers/property.ts";
import {
  type Activation,
  CelEnvironment,
  CelError,
  type Condition,
  type CustomFunctions,
  STANDARD_ENVIRONMENT as cel,
  type Expression,
  NO_FUNCTIONS,
  readFunctions,
  toJson,
  toText,
} from "./index.ts";

const ACTIVATION: Activation = {
  request: {
    method: "GET",
    scheme: "http",
    authority: "a.example",
    path: "/api/x",
    search: "?q=1",
    version: "HTTP/1.1",
    headers: ["x-a", "1", "cookie", "a=1; b=2", "x-b", "\xc3\xa9"],
    body: Buffer.from('{"a":[1,{"b":null}]}'),
    startTime: new Date(0),
  },
  response: { status: 200, headers: ["content-type", "text/plain"] },
  source: { address: "10.0.0.1", port: 1, rawAddress: "::1", rawPort: 2 },
  jwt: JSON.parse('{"sub":"alice","groups":["a"],"n":1.5,"__proto__":{"x":1},"constructor":2}'),
  env: {},
};

const PIECES = [
  ...'( ) [ ] { } . , ? : ! - + * / % < <= > >= == != && || in true false null 0 1 2u 1.5 "" "a" \'b\' b"x" x y'.split(
    " ",
  ),
  ..."request response source jwt env proxy .path .headers .headers.cookie .sub .groups [0] [?0] .?sub ?. has( size( .size()".split(
    " ",
  ),
  ...".all(x, .exists(x, .map(x, .filter(x, .exists_one(x, .transformMap(k,v, cel.bind(x, optional.of( .orValue(".split(
    " ",
  ),
  ...'int( string( dyn( type( timestamp("2024-01-01T00:00:00Z") duration("1s") .getHours() .matches("a+") .split(",")'.split(
    " ",
  ),
  ...'.join(",") .replace("a","aa") .format([1]) json( toJson( variables() ip("1.2.3.4") cidr("10.0.0.0/8") .containsIP('.split(
    " ",
  ),
  ...".constructor .__proto__ .toString() .hasOwnProperty( __proto__ constructor `a-b` // \\ \n \" '".split(" "),
];

/** Compiles and runs the text. Everything but a CelError is a defect. */
function run(text: string): void {
  try {
    const expression = cel.compileExpression(text, "response");
    if (expression.type === "bool" || expression.type === "dyn")
      cel.compileCondition(text, "response").matches(ACTIVATION, (error) => error instanceof CelError);
    const value = expression.evaluate(ACTIVATION);
    JSON.stringify(toJson(value));
    try {
      toText(value);
    } catch (error) {
      assert.ok(error instanceof TypeError);
    }
  } catch (error) {
    assert.ok(error instanceof CelError, `${JSON.stringify(text)}: ${error instanceof Error ? error.stack : error}`);
  }
}

test("any text is an expression or a CelError, and no evaluation crashes", () => {
  const pieces = fc.array(fc.constantFrom(...PIECES), { maxLength: 25 }).map((parts) => parts.join(""));
  fc.assert(fc.property(pieces, run), { numRuns: 4000 });
  fc.assert(fc.property(fc.string({ maxLength: 60 }), run), { numRuns: 1000 });
});

/** Expressions that are mostly well-formed, so that evaluations are reached too. */
const { expression } = fc.letrec<{ expression: string }>((tie) => {
  const part = tie("expression");
  return {
    expression: fc.oneof(
      { depthSize: "medium", withCrossShrink: true },
      fc.constantFrom(
        "1",
        "-2",
        "3u",
        "1.5",
        '"a"',
        'b"a"',
        "true",
        "null",
        "[]",
        "{}",
        "x",
        "jwt",
        "request",
        "request.headers",
      ),
      fc
        .tuple(part, fc.constantFrom("+", "-", "*", "/", "%", "==", "<", "&&", "||", "in"), part)
        .map(([a, op, b]) => `(${a} ${op} ${b})`),
      fc.tuple(part, part, part).map(([a, b, c]) => `(${a} ? ${b} : ${c})`),
      fc.tuple(part, part).map(([a, b]) => `[${a}, ${b}]`),
      fc.tuple(part, part).map(([a, b]) => `{${a}: ${b}}`),
      fc.tuple(part, part).map(([a, b]) => `${a}[${b}]`),
      fc
        .tuple(part, fc.constantFrom("all", "exists", "map", "filter", "exists_one"), part)
        .map(([a, m, b]) => `dyn(${a}).${m}(x, ${b})`),
      fc
        .tuple(fc.constantFrom("dyn", "size", "string", "int", "double", "type", "toJson", "uint", "bytes"), part)
        .map(([f, a]) => `${f}(${a})`),
      fc.tuple(part, part).map(([a, b]) => `cel.bind(x, ${a}, ${b})`),
      fc.tuple(part, part).map(([a, b]) => `default(${a}, ${b})`),
    ),
  };
});

test("well-formed expressions of any types end with a value or a CelError", () => {
  fc.assert(fc.property(expression, run), { numRuns: 4000 });
});

test("an observed condition is met when it is met unobserved, and its parts have the values of their texts", () => {
  let compared = 0;
  const known = fc.constantFrom("request.method", 'request.headers["x-a"]', 'request.headers["x-none"]', "dyn(jwt.n)");
  const side = fc.oneof(known, known, fc.constantFrom('"GET"', '"1"', "dyn(source.port)"), expression);
  const comparison = fc
    .tuple(side, fc.constantFrom("==", "!=", "<", ">="), side, fc.constantFrom("&&", "||"))
    .map(([a, sign, b, then]) => `(${a} ${sign} ${b}) ${then} `);
  const condition = fc
    .array(comparison, { minLength: 1, maxLength: 4 })
    .map((all) => `${all.join("")} response.code == 200`);
  fc.assert(
    fc.property(condition, (text) => {
      let compiled: Condition;
      try {
        compiled = cel.compileCondition(text, "response");
      } catch {
        return;
      }
      const { met, error, parts } = compiled.observe(ACTIVATION);
      let failed: CelError | undefined;
      const matches = compiled.matches(ACTIVATION, (cause) => {
        failed = cause;
        return false;
      });
      assert.deepEqual([met, error?.what], [matches, failed?.what], text);
      for (const { from, to, result } of parts) {
        const alone = outcome(text.slice(from, to));
        if (alone !== "refused") assert.deepEqual("error" in result ? "failed" : { value: result.value }, alone, text);
      }
      compared++;
    }),
    { numRuns: 2000 },
  );
  assert.ok(compared > 500, `${compared} compared`);
});

test("any text is definitions of functions or CelErrors", () => {
  const words = [..."f g this . ( ) { } , ... # // x y 1 \"a\" '' ; \n if f(x) g() this.f(y) { x } { 1 }".split(" ")];
  const text = fc.array(fc.constantFrom(...words), { maxLength: 25 }).map((parts) => parts.join(" "));
  fc.assert(
    fc.property(text, (definitions) => void readFunctions(definitions)),
    { numRuns: 2000 },
  );
});

test("a call returns what the body returns with its parameter bound to the argument", () => {
  let compared = 0;
  fc.assert(
    fc.property(expression, fc.constantFrom("1", '"a"', "[1, 2]", "jwt", "request.headers", "{}[1]"), (body, given) => {
      const argument = `dyn(${given})`;
      const { functions, problems } = readFunctions(`f(x) { ${body} }`);
      const [bound, called] = [outcome(`cel.bind(x, ${argument}, ${body})`), outcome(`f(${argument})`, functions)];
      // Text that does not compile is distinguished from an argument that fails, which a body may leave unread.
      if (problems.length > 0 || bound === "refused" || called === "refused" || outcome(argument) === "failed") return;
      assert.deepEqual(called, bound, `${body} of ${argument}`);
      compared++;
    }),
    { numRuns: 1500 },
  );
  assert.ok(compared > 100, `${compared} compared`);
});

function outcome(text: string, functions: CustomFunctions = NO_FUNCTIONS): unknown {
  let compiled: Expression;
  try {
    compiled = new CelEnvironment(functions).compileExpression(text, "response");
  } catch {
    return "refused";
  }
  try {
    return { value: toJson(compiled.evaluate(ACTIVATION)) };
  } catch {
    return "failed";
  }
}

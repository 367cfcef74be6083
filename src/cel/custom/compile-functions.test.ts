import assert from "node:assert/strict";
import { test } from "node:test";
import { CelEnvironment } from "../compile.ts";
import { type CustomFunction, formatSignature } from "../environment/custom-function.ts";
import { formatType } from "../environment/types.ts";
import { CelError } from "../syntax/cel-error.ts";
import { compileFunctions, readFunctions } from "./compile-functions.ts";

/** The mistakes in the definitions, as `line:column what`. */
function problems(definitions: string): string[] {
  return readFunctions(definitions).problems.map(
    ({ what, position }) => `${position?.line ?? 0}:${position?.column ?? 0} ${what}`,
  );
}

/** The only function called `name`. */
function compiled(definitions: string, name: string): CustomFunction {
  const [only, ...others] = compileFunctions(definitions).get(name) ?? [];
  assert.ok(only !== undefined && others.length === 0, name);
  return only;
}

test("definitions of one name are kept together, each with its signature", () => {
  const definitions = "f() { 0 } g(x) { x } f(x) { 1 } this.f() { 2 } f(x...) { 3 } f(x, y...) { 4 }";
  const { functions, problems: found, readable } = readFunctions(definitions);
  assert.deepEqual(
    [...functions].map(([name, all]) => [name, all.map(formatSignature)]),
    [
      ["f", ["f()", "f(x)", "this.f()", "f(x...)", "f(x, y...)"]],
      ["g", ["g(x)"]],
    ],
  );
  assert.deepEqual([found, readable], [[], true]);
});

test("a body finds its arguments in the frame, with its own variables behind them", () => {
  const definitions = "sums(a, b) { [10, 20].map(x, cel.bind(y, x + a, y * b)) } this.tail(rest...) { [this] + rest }";
  assert.deepEqual(compiled(definitions, "sums").run({}, [1n, 2n]), [22n, 42n]);
  assert.deepEqual(compiled(definitions, "tail").run({}, ["a", ["b", "c"]]), ["a", "b", "c"]);
});

test("a parameter may have any type; further arguments are a list", () => {
  const types = (definitions: string): string => formatType(compiled(definitions, "f").type);
  assert.equal(types("f(x) { x }"), "dyn");
  assert.equal(types("f(x...) { x }"), "list<dyn>");
  assert.equal(types("f(first, x...) { first }"), "dyn");
  assert.equal(types("f(x) { size(x) }"), "int");
  assert.equal(types("f() { g() + 'x' } g() { 'a' }"), "string");
});

test("a function has what the functions that it calls read and need", () => {
  const definitions = `
    failed() { response.code >= 500 }
    worth() { failed() || string(request.body) == jwt.sub }
    outer() { worth() }
    everything() { variables() }
    through() { everything().size() }
  `;
  const outer = compiled(definitions, "outer");
  assert.deepEqual([...outer.reads].sort(), ["jwt", "request", "request.body", "response"]);
  assert.deepEqual([...outer.needs].map(([variable, through]) => [variable, through.map(formatSignature)]).sort(), [
    ["jwt", ["worth()"]],
    ["request", ["worth()"]],
    ["response", ["worth()", "failed()"]],
  ]);
  assert.equal(outer.readsAll, false);
  for (const name of ["everything", "through"]) {
    const { readsAll, reads, needs } = compiled(definitions, name);
    assert.deepEqual([readsAll, reads.size, needs.size], [true, 0, 0], name);
  }
});

test("the depth of loops includes those of called functions", () => {
  const definitions = "flat(x) { x } pair(x) { x.map(a, x.map(b, a)) } triple(x) { x.map(a, pair(x)) }";
  const depths = ["flat", "pair", "triple"].map((name) => compiled(definitions, name).loops);
  assert.deepEqual(depths, [0, 2, 3]);
});

test("every mistake is reported with its place, also in functions without callers", () => {
  const definitions = [
    'one() { request.pth == "" }',
    "two(a) { b }",
    "  three() { nobody() }",
    'four() { "a" + 1 }',
    "five() { 1 + }",
    "two(x) { x }",
    "startsWith(a) { a }",
    "this.map(x) { x }",
    "base64(x) { x }",
    'six() { "a".matches("(") }',
    "seven() {}",
  ].join("\n");
  assert.deepEqual(problems(definitions), [
    "5:14 the expression is not complete",
    "11:10 the expression is not complete",
    "6:1 two(x) is defined above with as many parameters",
    "7:1 there is a function startsWith already; choose another name",
    "8:6 map is a macro of CEL; choose another name",
    "9:1 there is a function base64 already; choose another name",
    "1:17 request has no field pth; did you mean path?",
    "2:10 unknown variable b; did you mean a?",
    "3:13 unknown function nobody",
    "4:14 no such overload: string + int; both sides need the same type, which string(…) or int(…) makes them",
    "10:21 missing closing ): `(`; write it in RE2 syntax",
  ]);
  assert.match(
    readFunctions(definitions).problems[0]?.message ?? "",
    /\n {2}five\(\) { 1 \+ }\n {15}\^ line 5, column 14$/,
  );
});

test("names of macros, functions and namespaces are taken, for methods too", () => {
  const macros = ["has", "default", "coalesce", "cel", "exists_one", "with"];
  const builtIn = ["size", "variables", "uuid", "math", "optional", "sets"];
  for (const name of macros)
    assert.deepEqual(problems(`${name}() { 1 }`), [`1:1 ${name} is a macro of CEL; choose another name`]);
  for (const name of builtIn)
    assert.deepEqual(problems(`this.${name}() { 1 }`), [
      `1:6 there is a function ${name} already; choose another name`,
    ]);
  assert.deepEqual(problems("sizes() { 1 } mat() { 2 } request() { 3 }"), []);
});

test("two definitions of a name need different numbers of parameters, unless one is a method or takes a list", () => {
  assert.deepEqual(problems("f(a) { 1 } f(b) { 2 }"), ["1:12 f(b) is defined above with as many parameters"]);
  assert.deepEqual(problems("f(a...) { 1 } f(b...) { 2 }"), ["1:15 f(b...) is defined above with as many parameters"]);
  assert.deepEqual(problems("this.f(a) { 1 } this.f(b) { 2 }"), [
    "1:22 this.f(b) is defined above with as many parameters",
  ]);
  assert.deepEqual(problems("f(a) { 1 } f(a...) { 2 } this.f() { 3 } f() { 4 } f(a, b) { 5 }"), []);
});

test("the names of the functions are unknown if the text is not a list of definitions", () => {
  for (const text of ["f() { 1 } }", "f(", "f() { 1 }; g() { 2 }", "true"]) {
    const { functions, problems: found, readable } = readFunctions(text);
    assert.deepEqual([functions.size, found.length, readable], [0, 1, false], text);
  }
  assert.equal(readFunctions("f() { }").readable, true);
});

test("there are at most 65,536 characters and 256 functions", () => {
  const many = (count: number): string => Array.from({ length: count }, (_, i) => `f${i}() { ${i} }`).join("\n");
  assert.equal(compileFunctions(many(256)).size, 256);
  assert.deepEqual(problems(many(257)), ["0:0 there are 257 functions, at most 256 are allowed"]);
  const long = (length: number): string => "f() { 1 } ".padEnd(length, "#");
  assert.deepEqual(problems(long(65_536)), []);
  assert.deepEqual(problems(long(65_537)), ["0:0 the functions have 65537 characters, at most 65536 are allowed"]);
});

test("calls of functions with mistakes are not mistakes themselves, and fail", () => {
  const definitions = "broken() { nobody() }\nempty() { }\nturns() { turns() }\nf() { broken() }";
  const { functions, problems: found } = readFunctions(definitions);
  assert.equal(found.length, 3);
  const environment = new CelEnvironment(functions);
  for (const call of ["broken()", "empty()", "turns()", "f()"]) {
    const expression = environment.compileExpression(call);
    assert.equal(expression.type, "dyn");
    assert.throws(() => expression.evaluate({}), /the function cannot be used/, call);
  }
});

test("compiling throws the first problem", () => {
  assert.throws(
    () => compileFunctions("f() { a }\ng() { b }"),
    (error) => error instanceof CelError && error.what.startsWith("unknown variable a") && error.position?.line === 1,
  );
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { CelEnvironment } from "../compile.ts";
import { formatSignature } from "../environment/custom-function.ts";
import { CelError } from "../syntax/cel-error.ts";
import { type Definition, readDefinitions } from "./read-definitions.ts";

/** The definitions of a text without mistakes. */
function read(text: string): Definition[] {
  return readDefinitions(text, (problem) => assert.fail(problem.message));
}

const placed = ({ what, position }: CelError): string => `${position?.line}:${position?.column} ${what}`;

/** Why the text is not a list of definitions, as `line:column what`. */
function refusal(text: string): string {
  try {
    read(text);
  } catch (error) {
    assert.ok(error instanceof CelError, text);
    return placed(error);
  }
  assert.fail(`read: ${text}`);
}

test("functions, methods and lists of further arguments are read in order, with the place of each name", () => {
  const text =
    "now() { 1 }\nthis.under(prefix) { 2 } this.short() { 3 }\n  oneOf(value, choices...) { 4 } all(each...) { 5 }";
  const definitions = read(text);
  assert.deepEqual(definitions.map(formatSignature), [
    "now()",
    "this.under(prefix)",
    "this.short()",
    "oneOf(value, choices...)",
    "all(each...)",
  ]);
  for (const { name, at } of definitions) assert.ok(text.startsWith(`${name}(`, at), name);
  assert.deepEqual(
    definitions.map(({ body }) => body?.kind === "literal" && body.value),
    [1n, 2n, 3n, 4n, 5n],
  );
});

test("the receiver of a method is its first parameter", () => {
  const [method, plain] = read("this.under(prefix) { this } under(prefix) { prefix }");
  assert.deepEqual([method?.member, method?.params], [true, ["this", "prefix"]]);
  assert.deepEqual([plain?.member, plain?.params], [false, ["prefix"]]);
});

test("comments begin with # or // and go to the end of the line", () => {
  const definitions = read(`
    # f() { 1 }
    g(a, // the first
      b) # the second } {
    { // inside }
      a + b # and here }
    }
    // h() { 2 }`);
  assert.deepEqual(definitions.map(formatSignature), ["g(a, b)"]);
  assert.deepEqual(read(" # nothing\n"), []);
  assert.deepEqual(read(""), []);
});

test("comment signs inside a text belong to the text", () => {
  const [link] = read('link() { "https://a.example/#top" }');
  assert.equal(link?.body?.kind === "literal" && link.body.value, "https://a.example/#top");
});

test("braces in texts, comments and maps do not end a body", () => {
  const definitions = `
    open() { "}" + '''{"''' } # }
    nested(x) { {"a": {"b": x}}.a.b } // {
    final() { 1 }`;
  const evaluate = (call: string): unknown => CelEnvironment.defining(definitions).compileExpression(call).evaluate({});
  assert.equal(evaluate("open()"), '}{"');
  assert.equal(evaluate("nested(3)"), 3n);
  assert.equal(evaluate("final()"), 1n);
});

test("a mistake inside a body is reported with its place, and the next definitions are read", () => {
  const reported: string[] = [];
  const text = "one() { 1 + }\ntwo(a) { a }\n  three() {}\nfour() { true and false }\nfive() { 5 }";
  const definitions = readDefinitions(text, (problem) => reported.push(placed(problem)));
  assert.deepEqual(reported, [
    "1:13 the expression is not complete",
    "3:12 the expression is not complete",
    "4:15 unexpected and; did you mean &&?",
  ]);
  assert.deepEqual(
    definitions.map(({ name, body }) => [name, body !== undefined]),
    [
      ["one", false],
      ["two", true],
      ["three", false],
      ["four", false],
      ["five", true],
    ],
  );
});

test("each body may be as deep as an expression", () => {
  const nested = (levels: number): string => `${"(".repeat(levels)}1${")".repeat(levels)}`;
  assert.equal(read(`f() { ${nested(90)} } g() { ${nested(90)} }`).length, 2);
  const reported: string[] = [];
  readDefinitions(`f() { ${nested(120)} }`, ({ what }) => reported.push(what));
  assert.match(reported.join(), /nested deeper than the 100 levels/);
});

test("text that is not a definition is rejected where it begins", () => {
  const cases: Readonly<Record<string, string>> = {
    true: "1:1 true is a reserved word; choose another name",
    "if(x) { x }": "1:1 if is a reserved word; choose another name",
    "this.for() { 1 }": "1:6 for is a reserved word; choose another name",
    "f(in) { 1 }": "1:3 in is a reserved word; choose another name",
    "f(this) { 1 }": "1:3 `this` is the receiver of a method; choose another name",
    "this.f(a, this) { 1 }": "1:11 `this` is the receiver of a method; choose another name",
    "f(a, a) { 1 }": "1:6 duplicate parameter a",
    "f(a b) { 1 }": "1:5 unexpected b, expected ,",
    "this.f(a b) { 1 }": "1:10 unexpected b, expected ,",
    "f(a..., b) { 1 }": "1:7 after a..., the last parameter, ) is expected",
    "f(a.b) { 1 }": "1:5 unexpected b, expected .",
    'f("a") { 1 }': '1:3 unexpected "a", expected the name of a parameter',
    "f { 1 }": "1:3 unexpected {, expected (",
    "f() 1": "1:5 unexpected 1, expected {",
    "this() { 1 }": "1:5 unexpected (, expected .",
    "this.(a) { 1 }": "1:6 unexpected (, expected the name of a function",
    "f() { 1 } }": "1:11 unexpected }, expected a definition such as name(parameter) { expression }",
    "f(": "1:3 the text ends here, expected the name of a parameter",
    "f() { {1: 2}": "1:5 the body of f() is not closed; } is expected",
    'f() { "a }': "1:7 this literal has no closing quote",
    "f() { 1 }; g() { 2 }": '1:10 unexpected character ";"',
  };
  for (const [text, wanted] of Object.entries(cases)) assert.equal(refusal(text), wanted, text);
});

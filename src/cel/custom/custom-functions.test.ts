import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type Activation,
  CelEnvironment,
  CelError,
  STANDARD_ENVIRONMENT as cel,
  type Expression,
  readFunctions,
  type Scope,
} from "../index.ts";

const ACTIVATION: Activation = {
  request: {
    method: "GET",
    scheme: "http",
    authority: "a.example",
    path: "/tenants/blue/items",
    search: "",
    version: "HTTP/1.1",
    headers: ["x-internal", "true"],
  },
  metadata: { tenant: "blue", list: ["a", "b"] },
};

function compile(definitions: string, text: string, scope: Scope = "request"): Expression {
  return CelEnvironment.defining(definitions).compileExpression(text, scope);
}

function evaluate(definitions: string, text: string): unknown {
  return compile(definitions, text).evaluate(ACTIVATION);
}

/** What is wrong with the definitions, as `line:column what`. */
function problems(definitions: string): string[] {
  return readFunctions(definitions).problems.map(
    ({ what, position }) => `${position?.line ?? 0}:${position?.column ?? 0} ${what}`,
  );
}

function refusal(definitions: string, text: string, scope: Scope = "request"): CelError {
  try {
    compile(definitions, text, scope);
  } catch (error) {
    assert.ok(error instanceof CelError);
    return error;
  }
  assert.fail(`compiled: ${text}`);
}

test("functions, methods, a list of further arguments, and comments in both manners", () => {
  const definitions = `
    # who is known # at all
    authenticated() { jwt != null || request.headers["x-internal"] == "true" }
    this.hasTenantPrefix(tenant) { this.startsWith("/tenants/" + tenant + "/") } // a method
    joined(first, rest...) { first + rest.join(",") }
    this.between(low, high) {
      // numbers
      this >= low && this <= high # both included
    }
  `;
  assert.equal(evaluate(definitions, "authenticated()"), true);
  assert.equal(evaluate(definitions, "request.path.hasTenantPrefix(metadata.tenant)"), true);
  assert.equal(evaluate(definitions, 'request.path.hasTenantPrefix("red")'), false);
  assert.equal(evaluate(definitions, 'joined("a")'), "a");
  assert.equal(evaluate(definitions, 'joined("a", "b", "c")'), "ab,c");
  assert.equal(evaluate(definitions, "5.between(1, 5) && !7.between(1, 5)"), true);
});

test("braces in texts, comments and maps do not end a body", () => {
  const definitions = `
    open() { "}" + '''{"''' } # }
    nested(x) { {"a": {"b": x}}.a.b } // {
    final() { 1 }`;
  assert.equal(evaluate(definitions, "open()"), '}{"');
  assert.equal(evaluate(definitions, "nested(3)"), 3n);
  assert.equal(evaluate(definitions, "final()"), 1n);
});

test("the number of arguments chooses: as many parameters win over a list, a longer beginning over a shorter", () => {
  const definitions = `
    f(rest...) { "list " + string(size(rest)) }
    f(a) { "one" }
    f() { "none" }
    f(a, b, c, rest...) { "three and " + string(size(rest)) }
    this.f() { "method" }
  `;
  const chosen = ["f()", "f(1)", "f(1, 2)", "f(1, 2, 3)", "f(1, 2, 3, 4)", "1.f()"];
  assert.deepEqual(
    chosen.map((call) => evaluate(definitions, call)),
    ["none", "one", "list 2", "three and 0", "three and 1", "method"],
  );
});

test("functions call each other in any order, and know nothing of their callers' variables", () => {
  const definitions = `
    outer(x) { [1, 2].map(y, inner(x + y)) }
    inner(y) { cel.bind(x, y * 10, x + y) }
  `;
  assert.deepEqual(evaluate(definitions, "outer(1)"), [22n, 33n]);
  assert.deepEqual(evaluate(definitions, "[5].map(x, outer(x))[0]"), [66n, 77n]);
  assert.match(refusal("f() { x }", "[1].map(x, f())").what, /unknown variable x/);
});

test("an argument is evaluated once, and an error of one is the error of the call", () => {
  const definitions = "pair(x) { [x, x] } same(x) { pair(x) } ignore(x) { true }";
  const [first, second] = evaluate(definitions, "same(uuid())") as [string, string];
  assert.equal(first, second);
  const error = { message: /no such key: absent/ };
  assert.throws(() => evaluate(definitions, 'ignore(request.headers["absent"])'), error);
});

test("an error inside a function names it and points at the call", () => {
  const definitions = 'inner(name) { request.headers[name] }\nouter() { inner("absent") }';
  const expression = compile(definitions, "1 == 2 || outer() == ''");
  assert.throws(
    () => expression.evaluate(ACTIVATION),
    (error: CelError) =>
      error.what === "in outer(): in inner(name): no such key: absent" && error.position?.column === 11,
  );
  const condition = CelEnvironment.defining(definitions).compileCondition("1 == 2 || outer() == ''");
  assert.equal(
    condition.matches(ACTIVATION, () => true),
    false,
  );
});

test("what an expression reads counts through calls", () => {
  const definitions = `
    small() { bodyText().size() < 10 }
    bodyText() { string(request.body) }
    tenant() { jwt.tenant }
    everything() { variables().size() }
  `;
  assert.deepEqual([...compile(definitions, "small() && tenant() == 'a'").reads].sort(), [
    "jwt",
    "request",
    "request.body",
  ]);
  assert.deepEqual([...compile(definitions, "1 + 1 == 2").reads], []);
  assert.equal(compile(definitions, "everything() > 0").reads.has("request.body"), true);
  assert.equal(compile(definitions, "everything() > 0").reads.has("response"), false);
  assert.equal(compile(definitions, "everything() > 0", "response").reads.has("response.body"), true);
});

test("a function that reads what there is not where it is called is told at the call", () => {
  const definitions = "failed() { response.code >= 500 }\nworth() { failed() }";
  assert.equal(compile(definitions, "worth()", "response").type, "bool");
  const error = refusal(definitions, "true && worth()");
  assert.equal(
    error.what,
    "worth() cannot be called here: failed(), which it calls, reads response, which is not known here",
  );
  assert.equal(error.position?.column, 9);
  assert.match(
    refusal(definitions, "failed()", "network").what,
    /^failed\(\) cannot be called here: it reads response,/,
  );
});

test("the type of a function's value is known", () => {
  const definitions = 'yes() { true } text(x) { "a" + string(x) } any(x) { x }';
  const types = ["yes()", "text(1)", "any(1)"].map((text) => compile(definitions, text).type);
  assert.deepEqual(types, ["bool", "string", "dyn"]);
  assert.throws(
    () => CelEnvironment.defining(definitions).compileCondition("text(1)"),
    /the condition gives a value of type string/,
  );
});

test("a call that no definition fits names them", () => {
  const definitions = "this.under(prefix) { this.startsWith(prefix) }\njoined(first, rest...) { first }";
  assert.equal(
    refusal(definitions, "request.path.under()").what,
    "no such overload: string.under(); under is defined as this.under(prefix)",
  );
  assert.match(refusal(definitions, "joined()").what, /joined is defined as joined\(first, rest\.\.\.\)/);
  assert.match(refusal(definitions, 'request.path.undr("/")').what, /unknown function undr; did you mean under\?/);
  assert.match(refusal(definitions, 'under("/")').what, /unknown function under/);
});

test("functions cannot call themselves, alone or in turns", () => {
  assert.deepEqual(problems("f(x) { x == 0 || f(x) }"), ["1:18 functions cannot call themselves: f(x) → f(x)"]);
  assert.deepEqual(problems("ok() { a() }\na() { b() }\nb() { 1.c() }\nthis.c() { a() }"), [
    "4:12 functions cannot call themselves: a() → b() → this.c() → a()",
  ]);
  assert.deepEqual(problems("f(x) { x } f(x, y) { f(x) }"), [], "other definitions of a name are other functions");
});

test("every mistake is told with its place, those of functions that nobody calls too", () => {
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
  assert.deepEqual(
    problems(definitions),
    [
      "5:14 the expression is not complete",
      "11:10 the expression is not complete",
      "6:1 two(x) is defined above with as many parameters",
      "7:1 there is a function startsWith already; choose another name",
      "8:6 map is a macro of CEL; choose another name",
      "9:1 there is a function base64 already; choose another name",
      "1:17 request has no field pth; did you mean path?",
      "2:10 unknown variable b; did you mean a?",
      "3:13 unknown function nobody",
      "4:14 no such overload: string + int; both sides have to be of one type, which string(…) or int(…) makes them",
      "10:21 error parsing regexp: missing closing ): `(`; write the pattern in RE2 syntax",
    ].map((line) => line),
  );
  assert.match(
    readFunctions(definitions).problems[0]?.message ?? "",
    /\n {2}five\(\) { 1 \+ }\n {15}\^ line 5, column 14$/,
  );
});

test("what is no definition is told where it begins", () => {
  const cases: Readonly<Record<string, string>> = {
    true: "1:1 true is a reserved word; choose another name",
    "if(x) { x }": "1:1 if is a reserved word; choose another name",
    "f(in) { 1 }": "1:3 in is a reserved word; choose another name",
    "f(this) { 1 }": "1:3 `this` is the receiver of a method; choose another name",
    "f(a, a) { 1 }": "1:6 there are two parameters a",
    "f(a..., b) { 1 }": "1:7 after a..., the last parameter, ) is expected",
    "f(a.b) { 1 }": "1:5 unexpected b, expected .",
    "f { 1 }": "1:3 unexpected {, expected (",
    "f() 1": "1:5 unexpected 1, expected {",
    "this() { 1 }": "1:5 unexpected (, expected .",
    "f() { 1 } }": "1:11 unexpected }, expected a definition such as name(parameter) { expression }",
    "f(": "1:3 the text ends here, expected the name of a parameter",
    "f() { {1: 2}": "1:5 the body of f() is not closed; } is expected",
    'f() { "a }': "1:7 this literal has no closing quote",
    "f() { 1 }; g() { 2 }": '1:10 unexpected character ";"',
  };
  for (const [text, wanted] of Object.entries(cases)) {
    assert.deepEqual(problems(text), [wanted], text);
    assert.equal(readFunctions(text).readable, false);
  }
  assert.deepEqual(problems(" # nothing\n"), []);
});

test("calls of functions with mistakes are not mistakes themselves", () => {
  const { functions } = readFunctions("broken() { nobody() }\nf() { broken() }");
  assert.equal(new CelEnvironment(functions).compileExpression("f()").type, "dyn");
});

test("functions that multiply each other's work are stopped by the budget, whatever is around them", () => {
  const doubling = Array.from({ length: 40 }, (_, i) => `f${i + 1}() { f${i}() + f${i}() }`);
  const expression = compile(["f0() { 1 }", ...doubling].join("\n"), "true || f40() > 0 ? f40() > 0 : false");
  assert.throws(() => expression.evaluate(ACTIVATION), /too much work/);
});

test("loops inside each other count through calls", () => {
  const definitions =
    "inner(x) { x.map(a, x.map(b, a)) } outer(x) { x.map(a, inner(x)) } most(x) { x.map(a, outer(x)) }";
  assert.match(problems(definitions).join(), /more than 3 loops inside each other/);
  assert.match(refusal("f(x) { x.map(a, x.map(b, a)) }", "[1].map(x, [2].map(y, f([3])))").what, /more than 3 loops/);
  assert.equal(evaluate("f(x) { x.all(a, a > 0) }", "f([1]) && f([2]) && [[1]].all(x, [x].all(y, f(y)))"), true);
});

test("environments do not know each other's functions", () => {
  const [one, two, other] = ["f() { 1 }", "f() { 2 }", "g() { 3 }"].map((text) => CelEnvironment.defining(text));
  assert.equal(one?.compileExpression("f()").evaluate({}), 1n);
  assert.equal(two?.compileExpression("f()").evaluate({}), 2n);
  assert.equal(one?.compileExpression("f()").evaluate({}), 1n);
  assert.throws(() => other?.compileExpression("f()"), /unknown function f/);
  assert.throws(() => cel.compileExpression("f()"), /unknown function f/);
});

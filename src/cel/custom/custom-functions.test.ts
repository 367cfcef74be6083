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

test("functions, methods, a list of further arguments, and both kinds of comments", () => {
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

test("functions call each other in any order, and cannot read their callers' variables", () => {
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

test("a function that reads a variable that is unknown to its caller is rejected at the call", () => {
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

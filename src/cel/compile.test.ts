import assert from "node:assert/strict";
import { test } from "node:test";
import { Budget, CelError, STANDARD_ENVIRONMENT as cel, type RequestParts } from "./index.ts";

const REQUEST: RequestParts = {
  method: "GET",
  scheme: "https",
  authority: "Shop.example:8443",
  path: "/cart/items",
  search: "?page=2",
  version: "HTTP/1.1",
  headers: ["x-a", "1", "x-a", "2", "cookie", "a=1", "cookie", "b=2", "x-name", Buffer.from("Zoë").toString("latin1")],
};

function evaluate(text: string, request: RequestParts = REQUEST): unknown {
  return cel.compileExpression(text).evaluate({ request });
}

function matches(text: string, request: RequestParts = REQUEST): boolean {
  return cel.compileCondition(text).matches({ request }, () => assert.fail(`${text} failed`));
}

function errorOf(text: string): CelError {
  try {
    cel.compileExpression(text);
  } catch (error) {
    assert.ok(error instanceof CelError);
    return error;
  }
  assert.fail(`compiled: ${text}`);
}

test("every field of the request can be read", () => {
  const fields = {
    method: "GET",
    uri: "https://Shop.example:8443/cart/items?page=2",
    host: "Shop.example:8443",
    scheme: "https",
    path: "/cart/items",
    pathAndQuery: "/cart/items?page=2",
    version: "HTTP/1.1",
  };
  for (const [name, value] of Object.entries(fields)) assert.equal(evaluate(`request.${name}`), value);
  const startTime = new Date("2024-02-01T00:00:00Z");
  assert.equal(matches('request.startTime > timestamp("2024-01-01T00:00:00Z")', { ...REQUEST, startTime }), true);
});

test("headers: a repeated field is a list, cookies are one text, host is the authority, text is UTF-8", () => {
  assert.deepEqual(evaluate('request.headers["x-a"]'), ["1", "2"]);
  assert.equal(evaluate('request.headers["x-a"] == ["1", "2"] && request.headers["x-a"].exists(v, v == "2")'), true);
  assert.equal(evaluate("request.headers.cookie"), "a=1; b=2");
  assert.equal(evaluate("request.headers.host"), "Shop.example:8443");
  assert.equal(evaluate('request.headers["x-name"]'), "Zoë");
});

test("a repeated header is not a string, and neither are bytes that are not UTF-8", () => {
  const headers = ["x-role", "user", "x-role", "banned", "x-raw", "a\xff", "x-one", "a"];
  const request = { ...REQUEST, headers };
  for (const text of [
    'request.headers["x-role"] == "banned"',
    'request.headers["x-role"] != "user"',
    'request.headers["x-role"] == request.method',
    'request.headers["x-role"] in ["banned"]',
    'request.headers["x-role"].contains("ban")',
    'default(request.headers["x-role"], "") == "banned"',
    'request.headers[?"x-role"].orValue("") == "banned"',
    'request.headers[?"x-role"] == optional.of("banned")',
    'request.headers[request.method == "" ? "" : "x-role"] == "banned"',
    'request.headers.exists(name, request.headers[name] == "banned")',
    'request.headers.exists(name, value, value == "banned")',
    'request.headers.map(name, request.headers[name]).exists(value, value in ["banned"])',
    '"banned" in request.headers.map(name, request.headers[name])',
    'cel.bind(role, request.headers["x-role"], role == "banned")',
    '[request.headers["x-role"]] == ["banned"]',
    '{"a": request.headers["x-role"]} != {"a": "user"}',
    'sets.intersects(["banned"], [request.headers["x-role"]])',
    'request.headers["x-role"] in {"banned": 1}',
    '{"banned": true}[?request.headers["x-role"]].orValue(false)',
    'default({"banned": true}[request.headers["x-role"]], false)',
  ])
    assert.match(failureOf(text, request), /the field x-role is repeated/, text);
  for (const text of ['request.headers["x-role"].startsWith("b")', 'request.headers["x-raw"].split(",")[0] == "a"'])
    assert.match(failureOf(text, request), /no such overload/, text);
  for (const text of [
    'request.headers["x-role"] == ["user", "banned"]',
    '"banned" in request.headers["x-role"]',
    'request.headers.join()["x-role"] == "user,banned"',
    'request.headers["x-one"] == "a" && request.headers["x-one"].contains("a")',
    'request.headers["x-raw"] == b"a\\xff"',
  ])
    assert.equal(matches(text, request), true, text);
});

test("headers named like members of objects are only headers", () => {
  assert.equal(evaluate("has(request.headers.constructor)"), false);
  assert.equal(matches('request.headers["__proto__"] == "x"', { ...REQUEST, headers: ["__proto__", "x"] }), true);
  assert.throws(() => evaluate("dyn(request).reset"), /no such key: reset/);
});

test("headers are read only if the expression uses them", () => {
  let reads = 0;
  const request = {
    ...REQUEST,
    get headers(): readonly string[] {
      reads++;
      return REQUEST.headers;
    },
  };
  assert.equal(matches('request.path == "/cart/items" || request.headers.host == "x"', request), true);
  assert.equal(reads, 0);
  assert.equal(matches('request.headers["x-name"] == "Zoë" && has(request.headers.cookie)', request), true);
  assert.equal(reads, 2);
});

test("a condition over an absent value is not true", () => {
  assert.equal(matches('request.method == "GET"'), true);
  for (const text of [
    'request.headers.absent == "1"',
    '!(request.headers.absent == "1")',
    'request.headers.cookie("none") == "1"',
    'request.path.split("/")[9] == "1"',
    "request.headers[?'absent'].value() == '1'",
    'size(dyn(null)) == 1 || "a" in dyn(null) || dyn(null).exists(x, x == 1)',
    'dyn(null).a.b.c == "1"',
    "dyn(null)",
    'json("{}").items.filter(i, i.a == 1).size() > 0',
  ])
    assert.equal(matches(text), false, text);
  assert.equal(matches('request.headers.absent == "1" || request.method == "GET"'), true);
});

/** What `matches` hands over when a condition fails. */
function failureOf(text: string, request: RequestParts = REQUEST): string {
  let failure = "";
  const result = cel.compileCondition(text).matches({ request }, (error) => {
    failure = error.what;
    return true;
  });
  assert.equal(result, failure !== "", text);
  return failure;
}

test("a condition that cannot be evaluated is reported to its caller as failed", () => {
  const request = { ...REQUEST, path: "/%zz", body: Buffer.from([0x7b, 0xff]) };
  for (const [text, what] of [
    ['url.decode(request.path).contains("..")', /percent/],
    ['string(request.body).contains("drop")', /UTF-8/],
    ['json(request.body).user == "x"', /JSON/],
    ["1 / int(request.body.size() - 2) == 1", /division by zero/],
    ['dyn(request.path).user == "x"', /has no field user/],
    ["dyn(request.path)", /true or false is needed, not string/],
    ["dyn(request.path) && true", /true or false is needed, not string/],
    ["fail('why')", /why/],
    // Absence does not cover up another failure.
    ['request.headers.absent == "1" || json(request.body).user == "x"', /JSON/],
    ['request.headers.absent == "1" && json(request.body).user == "x"', /JSON/],
    ['[request.headers.accept, string(request.body)].exists(v, v == "drop")', /UTF-8/],
    ['default(json(request.body).user, "nobody") == "x"', /JSON/],
    // An absent value in one element must not skip the others.
    ['json(\'[{"b": 1}, {"a": 1}]\').filter(i, i.a == 1).size() > 0', /no such key/],
    ['json(\'[{"b": 1}, {"a": 1}]\').map(i, i.a) == [1]', /no such key/],
  ] as const)
    assert.match(failureOf(text, { ...request, headers: ["accept", "a"] }), what, text);
  assert.equal(matches('json(\'[{"b": 1}, {"a": 1}]\').exists(i, i.a == 1)'), true);
  assert.equal(matches('coalesce(url.decode("%zz"), "other") == "other"'), true);
});

test("the work of all expressions for one request adds up", () => {
  const text = 'size(request.body) > 0 && string(request.body).contains("x")';
  const request = { ...REQUEST, body: Buffer.alloc(2 * 1024 * 1024, "a") };
  const budget = new Budget();
  // Steps decide here, not the speed of the machine.
  budget.microseconds = Number.POSITIVE_INFINITY;
  const outcomes = Array.from({ length: 4 }, () => {
    let failed = false;
    cel.compileCondition(text).matches({ request, budget }, () => {
      failed = true;
      return false;
    });
    return failed;
  });
  assert.deepEqual(outcomes, [false, true, true, true]);
  const small = { ...request, body: Buffer.alloc(1024, "a") };
  assert.equal(failureOf(text, small), "", "an evaluation of its own has a budget of its own");
  assert.throws(
    () => cel.compileExpression("request.path").evaluate({ request, budget }),
    /too much work for one request/,
    "a budget that is used up stays so",
  );
});

test("evaluate() says what failed and where", () => {
  assert.throws(
    () => evaluate('request.headers.absent == "1"'),
    (error) =>
      error instanceof CelError && error.position?.column === 17 && error.message.startsWith("no such key: absent"),
  );
});

test("errors show the place in the expression", () => {
  const unknown = errorOf('request.path == "/x" &&\n  foo == 1');
  assert.deepEqual(unknown.position, { offset: 26, line: 2, column: 3 });
  assert.equal(unknown.message, "unknown variable foo; known here: request\n    foo == 1\n    ^ line 2, column 3");
  assert.match(errorOf("request.path ==").message, /^the expression is not complete\n {2}request\.path ==\n {17}\^/);
  assert.match(errorOf("request.nope").message, /^request has no field nope; known here: body, /);
  assert.match(errorOf("nope(1)").message, /^unknown function nope/);
  assert.match(
    errorOf("request.path + 1").message,
    /^no such overload: string \+ int; both sides need the same type, which string/,
  );
  assert.match(
    errorOf("1.matches('a')").message,
    /^no such overload: int\.matches\(string\); it takes string\.matches\(string\)/,
  );
  assert.match(errorOf("").message, /^the expression is not complete/);
});

test("syntax of other languages gets an error with the CEL equivalent", () => {
  const wrong: readonly (readonly [expression: string, message: RegExp])[] = [
    ['request.method = "GET"', /^unexpected character "="; did you mean ==\?\n/],
    ["true & false", /^unexpected character "&"; did you mean &&\?\n/],
    ["true and false", /^unexpected and; did you mean &&\?\n/],
    ["[true or false]", /^unexpected or, expected , or \]; did you mean \|\|\?\n/],
    ['request.path.startsWith("/a"', /^the expression is not complete, expected , or \)\n/],
    ["{1: 2", /^the expression is not complete, expected , or }\n/],
    ["length(request.path) > 3", /^unknown function length; did you mean size\?\n/],
    [
      'request.headers.x-user-id == "a"',
      /^unknown variable user; a name with a dash is written request\.headers\["x-user-id"\]\n/,
    ],
  ];
  for (const [expression, message] of wrong) assert.match(errorOf(expression).message, message);
});

test("in an error, a long line is cut around the position", () => {
  const { message } = errorOf(`"${"a".repeat(1000)}" == foo && "${"b".repeat(1000)}" == "b"`);
  for (const line of message.split("\n")) assert.ok(line.length < 160, line);
  assert.match(message, /foo/);
});

test("names are known only in scopes that have their values", () => {
  assert.throws(() => cel.compileExpression("response.code == 200"), /unknown variable response/);
  const condition = cel.compileCondition(
    'response.code == 200 && proxy.route.name == "r" && source.port > 1024',
    "response",
  );
  const request = REQUEST;
  const source = { address: "::1", port: 4711, rawAddress: "::1", rawPort: 4711 };
  const response = { status: 200, headers: [] };
  const failed = (): boolean => assert.fail("failed");
  assert.equal(condition.matches({ request, response, source, proxy: { route: { name: "r" } } }, failed), true);
  assert.equal(condition.matches({ request }, failed), false);
});

test("an expression that cannot be true or false is rejected as a condition", () => {
  assert.equal(cel.compileCondition('request.path == "/"').type, "bool");
  assert.equal(cel.compileCondition('dyn(request.path) == "/" ? dyn(true) : false').type.startsWith("dyn"), true);
  assert.throws(
    () => cel.compileCondition("request.path"),
    /gives a value of type string where true or false is needed/,
  );
});

test("the two values of a choice may differ in type, the condition may not", () => {
  const text = 'request.method == "GET" ? 1 : "a"';
  assert.equal(cel.compileExpression(text).type, "dyn");
  assert.equal(evaluate(text), 1n);
  assert.equal(evaluate(`!${text.replace("request", "(request").replace(" ?", ") ?")}`), "a");
  assert.equal(evaluate("(true ? [1] : {'a': 1}).size()"), 1n);
  assert.equal(cel.compileExpression("true ? 1 : 2").type, "int");
  assert.match(errorOf("request.path ? 1 : 'a'").message, /^no such overload: string \? int : string/);
});

test("matches uses linear-time patterns and finds them anywhere", () => {
  assert.equal(evaluate('request.path.matches("items$")'), true);
  assert.equal(evaluate('matches(request.path, "^/cart")'), true);
  assert.equal(evaluate('["x", "items"].exists(word, request.path.matches(word + "$"))'), true);
  // Backtracking would take longer than the universe is old. A longer text could exceed the budget on a slow machine.
  const path = `/${"a".repeat(2000)}!`;
  assert.equal(evaluate('request.path.matches("^/(a+)+$")', { ...REQUEST, path }), false);
  assert.equal(evaluate('dyn(request.path).matches("^/(a|a)*$")', { ...REQUEST, path }), false);
});

test("a literal pattern is checked with the expression", () => {
  assert.match(errorOf('request.path.matches("(")').message, /missing closing \).*write it in RE2 syntax\n/);
  assert.match(errorOf('request.path.matches("a(?=b)")').message, /RE2 has no look-around, `\(\?=`/);
  assert.match(errorOf(`request.path.matches("${"a".repeat(1025)}")`).message, /longer than 1024 characters/);
});

test("an invalid pattern from a request fails only the evaluation", () => {
  assert.match(failureOf("request.path.matches(request.headers.p)", { ...REQUEST, headers: ["p", "("] }), /RE2/);
  assert.equal(matches("request.path.matches(request.headers.p)", { ...REQUEST, headers: ["p", "^/c"] }), true);
});

test("expressions that could run for long are rejected", () => {
  assert.match(errorOf(`request.path == "${"a".repeat(4096)}"`).message, /at most 4096 are allowed/);
  assert.match(errorOf(`${"(".repeat(120)}true${")".repeat(120)}`).message, /nested deeper than the 100 levels/);
  assert.match(errorOf(`[${"a,".repeat(2020)}a]`).message, /more than the 2000 parts/);
  const loops = "[1].map(a, [1].map(b, [1].map(c, [1].map(d, a + b + c + d))))";
  assert.match(errorOf(loops).message, /more than 3 loops inside each other/);
});

test("an evaluation that takes too many steps is an error that || does not hide", () => {
  const doubled = Array.from({ length: 40 }, (_, i) => `cel.bind(a${i + 1}, a${i} + a${i}, `).join("");
  const text = `cel.bind(a0, "xxxxxxxx", ${doubled}a40.size() > 0${")".repeat(41)}`;
  assert.throws(() => evaluate(text), /too much work/);
  assert.match(failureOf(`${text} || true`), /too much work/);
  const lists = Array.from({ length: 40 }, (_, i) => `cel.bind(a${i + 1}, [a${i}, a${i}], `).join("");
  assert.throws(() => evaluate(`cel.bind(a0, [1], ${lists}a40 == [a39, a39]${")".repeat(41)}`), /too much work/);
  const loop = `lists.range(1000).all(i, lists.range(1000).all(j, !string(request.body).contains("x")))`;
  assert.throws(() => evaluate(loop, { ...REQUEST, body: Buffer.alloc(1 << 20) }), /too much work/);
});

test("a call with constants is not evaluated once if its value differs each time", () => {
  for (const text of ["'a' + uuid()", "uuid().size() == 36 ? [random()] : []", "string(random())"]) {
    const expression = cel.compileExpression(text);
    assert.notDeepEqual(expression.evaluate({}), expression.evaluate({}), text);
  }
});

test("the overload for the types of the arguments says which type the result has", () => {
  assert.match(errorOf("math.greatest(1, 2) + 'a'").message, /^no such overload: int \+ string/);
});

test("the error for a function of many types does not list them", () => {
  assert.match(errorOf("string([1])").message, /^no such overload: string\(list<int>\)$/m);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { type Activation, CelError, STANDARD_ENVIRONMENT as cel, type Observation } from "./index.ts";

const ACTIVATION = {
  request: {
    method: "GET",
    scheme: "http",
    authority: "a.test",
    path: "/x",
    search: "?a=1",
    version: "HTTP/1.1",
    headers: ["x-a", "1", "in", "2"],
  },
  jwt: { sub: "alice", groups: ["a", "b"], nested: { "strange key": true } },
  env: {},
} as unknown as Activation;

const inputs = (text: string): Record<string, unknown> =>
  Object.fromEntries(
    cel
      .compileCondition(text, "request")
      .observe(ACTIVATION)
      .inputs.map(({ text: path, value }) => [path, value]),
  );

/** Texts of the parts with their results. */
const parts = (text: string): Record<string, unknown> =>
  Object.fromEntries(
    cel
      .compileCondition(text, "request")
      .observe(ACTIVATION)
      .parts.map(({ from, to, result }) => [text.slice(from, to), "error" in result ? result : result.value]),
  );

test("the longest paths that an expression reads, each once, with their values", () => {
  assert.deepEqual(inputs('jwt.sub == "bob" || jwt.sub == "eve" || request.path.startsWith("/admin")'), {
    "jwt.sub": "alice",
    "request.path": "/x",
  });
  assert.deepEqual(inputs('"c" in jwt.groups && request.headers["x-a"] == "2"'), {
    "jwt.groups": ["a", "b"],
    'request.headers["x-a"]': "1",
  });
  assert.deepEqual(inputs('jwt.nested["strange key"] && request.headers["in"] == "2"'), {
    'jwt.nested["strange key"]': true,
    'request.headers["in"]': "2",
  });
});

test("absent values are null; loops, whole header maps and constants are not inputs", () => {
  assert.deepEqual(inputs('has(jwt.role) && request.headers["x-b"] == "1"'), {
    "jwt.role": null,
    'request.headers["x-b"]': null,
  });
  assert.deepEqual(inputs("jwt.groups.exists(sub, sub == request.method)"), {
    "jwt.groups": ["a", "b"],
    "request.method": "GET",
  });
  assert.deepEqual(inputs('"x-a" in request.headers && 1 < 2'), {});
});

test("of very many paths the first are shown", () => {
  const many = Array.from({ length: 50 }, (_, index) => `jwt.f${index} == 1`).join(" || ");
  assert.equal(Object.keys(inputs(many)).length, 20);
});

test("the parts that were reached, as they are written, with their results", () => {
  assert.deepEqual(parts('request.method == "GET" && (jwt.sub == "bob" || jwt.groups.size() > 1) && !has(jwt.x)'), {
    'request.method == "GET"': true,
    'jwt.sub == "bob" || jwt.groups.size() > 1': true,
    'jwt.sub == "bob"': false,
    "jwt.groups.size() > 1": true,
    "jwt.groups.size()": 2,
    "!has(jwt.x)": true,
  });
  assert.deepEqual(parts('jwt.sub == "alice" || request.path == "/y"'), { 'jwt.sub == "alice"': true });
  assert.deepEqual(parts('(request.path + "!").size() == 3 ? true : jwt.sub.size() > int(jwt.sub)'), {
    '(request.path + "!").size() == 3': true,
    '(request.path + "!").size()': 3,
    'request.path + "!"': "/x!",
  });
});

test("a part that fails says why; turns of a loop are not shown, bindings are", () => {
  assert.deepEqual(parts('request.headers["x-b"] == "1" || int(jwt.sub) == 1'), {
    'request.headers["x-b"] == "1"': { error: "no such key: x-b" },
  });
  assert.deepEqual(parts('int(jwt.sub) == 1 ? true : request.path == "/x"'), {});
  assert.deepEqual(parts('(int(jwt.sub) == 1 || request.path == "/x") && request.path != "/y"'), {
    'int(jwt.sub) == 1 || request.path == "/x"': true,
    "int(jwt.sub)": { error: '"alice" is not an integer' },
    'request.path == "/x"': true,
    'request.path != "/y"': true,
  });
  assert.deepEqual(parts('jwt.groups.exists(g, g == "b") && cel.bind(s, jwt.sub, s.size() == 5)'), {
    'jwt.groups.exists(g, g == "b")': true,
    "s.size() == 5": true,
    "s.size()": 5,
  });
});

test("an observer gets what each evaluation computes, and the result is the same", () => {
  const seen: unknown[] = [];
  const observer = { evaluated: (text: string, { whole }: Observation) => seen.push([text, whole?.result]) };
  const observed = { ...ACTIVATION, observer };
  assert.equal(cel.compileExpression('jwt.sub + request.headers["x-a"]', "request").evaluate(observed), "alice1");
  // May be a credential of the configuration.
  assert.equal(cel.compileExpression('"Bearer s" + jwt.sub', "request").evaluate(observed), "Bearer salice");
  assert.equal(
    cel.compileCondition("has(jwt.none)", "request").matches(observed, () => true),
    false,
  );
  assert.throws(() => cel.compileExpression("int(jwt.sub)", "request").evaluate(observed), CelError);
  assert.deepEqual(seen, [
    ['jwt.sub + request.headers["x-a"]', { value: "alice1", type: "string" }],
    ["has(jwt.none)", { value: false, type: "bool" }],
    ["int(jwt.sub)", { error: '"alice" is not an integer' }],
  ]);
});

test("a condition that is its only part shows no parts, nor do constants", () => {
  assert.deepEqual(parts('request.path.startsWith("/x")'), {});
  assert.deepEqual(parts('request.path.startsWith("/" + "x")'), {});
});

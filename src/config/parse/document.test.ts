import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { formatDiagnostics } from "../../translation/problems/diagnostics.ts";
import { ConfigDocument } from "./document.ts";

type Path = readonly PropertyKey[];

function place(text: string, path: Path, env: Record<string, string> = {}, key?: string): string {
  const document = new ConfigDocument("f", text, env);
  assert.equal(document.diagnostics.length, 0);
  document.report(path, { message: "here" }, key);
  const [diagnostic] = document.diagnostics;
  return `${diagnostic?.line}:${diagnostic?.column}`;
}

test("the position of values and keys, in block and flow style", () => {
  const text = 'a:\n  - b: 1\n    "c d":   two\n  - {e: [x,  y], f: {}}\n';
  assert.equal(place(text, ["a", 0, "b"]), "2:8");
  assert.equal(place(text, ["a", 0, "c d"]), "3:14");
  assert.equal(place(text, ["a", 0], {}, "c d"), "3:5");
  assert.equal(place(text, ["a", 1, "e", 1]), "4:14");
  assert.equal(place(text, ["a", 1], {}, "f"), "4:18");
  assert.equal(place(text, []), "1:1");
});

test("a missing value has the position of the object that should contain it", () => {
  const text = "a:\n  b: {c: 1}\n  d:\n";
  assert.equal(place(text, ["a", "b", "nope"]), "2:6");
  assert.equal(place(text, ["a", "nope", "deeper", 3]), "2:3");
  assert.equal(place(text, ["a", "d"]), "3:3", "a key without a value");
  assert.equal(place(text, ["a", "b", "c", "deeper"]), "2:10");
});

test("an alias is followed to the text that it stands for", () => {
  const text = "a: &x\n  b: 1\nc: *x\nd:\n  <<: *x\n";
  assert.equal(place(text, ["c"]), "3:4");
  assert.equal(place(text, ["c", "b"]), "2:6");
  assert.equal(place(text, ["d", "b"]), "5:3", "what a merge brings stands at the merge");
});

test("an alias stands for the anchor before it, and for one that is around it", () => {
  const text = "a: &x {b: 1}\nc: *x\nd: &x {b: 2}\ne: *x\nf: &y {g: [*y]}\n";
  assert.equal(place(text, ["c", "b"]), "1:11");
  assert.equal(place(text, ["e", "b"]), "3:11");
  assert.equal(place(text, ["f", "g", 0, "g"]), "5:11");
});

test("a problem behind each of many aliases is placed without reading the whole text for it", {
  timeout: 30_000,
}, async () => {
  const many = 4000;
  const text = `a: &a {x: 1}\nb:\n${"  - {c: *a, d: 1}\n".repeat(many)}`;
  const document = new ConfigDocument("f", text, {});
  for (let i = 0; i < many; i++) {
    document.report(["b", i, "c", "x"], { message: "wrong" });
    // So that the limit can end the test.
    if (i % 100 === 0) await nextTurn();
  }
  assert.deepEqual(new Set(document.diagnostics.map(({ line, column }) => `${line}:${column}`)), new Set(["1:11"]));
});

test("variables: positions are those of the text as written", () => {
  const text = "a: $LONG\nb: ${NONE:-x}\nc: {d: $LONG, e: $EMPTY, f: 1}\n";
  const env = { LONG: "a value of some length", EMPTY: "" };
  assert.equal(place(text, ["a"], env), "1:4");
  assert.equal(place(text, ["b"], env), "2:4");
  assert.equal(place(text, ["c", "f"], env), "3:29");
  const lines = "a: $LIST\nb: 1\n";
  assert.equal(place(lines, ["a", "x"], { LIST: "\n  x: 1\n  y: 2" }), "1:4");
  assert.equal(place(lines, ["b"], { LIST: "\n  x: 1\n  y: 2" }), "2:4");
});

test("line ends of every kind, and a last line without one", () => {
  assert.equal(place("a: 1\r\nb:\r\n  c: x", ["b", "c"]), "3:6");
  const document = new ConfigDocument("f", "a: 1\r\nb: 2\r\n", {});
  document.report(["b"], { message: "m" });
  assert.equal(document.diagnostics[0]?.source, "b: 2");
});

test("secrets: neither values from the environment nor lines that hold secrets are shown", () => {
  const text = "name: $TOKEN\npassword: literal-secret\nlist: {x-api-key: literal-secret, other: 1}\n";
  const document = new ConfigDocument("f", text, { TOKEN: "from-the-environment" });
  document.report(["name"], { message: "bad from-the-environment", suggestion: "from-the-environment2" });
  document.report(["password"], { message: "bad" });
  document.report(["list", "other"], { message: "bad" });
  document.report([], { message: "unknown" }, "from-the-environment");
  const shown = formatDiagnostics(document.diagnostics);
  assert.doesNotMatch(shown, /from-the-environment|literal-secret/);
  assert.match(
    shown,
    /^f:1:7: error: name: bad \$\{TOKEN\}; did you mean "\$\{TOKEN\}2"\?\n {2}name: \$TOKEN\n {8}\^\n/,
  );
});

test("of very many problems the first hundred are printed", () => {
  const document = new ConfigDocument("f", "a: 1", {});
  for (let i = 0; i < 250; i++) document.report(["a"], { message: `problem ${i}` });
  const shown = formatDiagnostics(document.diagnostics);
  assert.match(shown, /problem 99\n/);
  assert.doesNotMatch(shown, /problem 100\n/);
  assert.match(shown, /and 150 more\n$/);
});

test("the same value many times through an alias is fine; a bomb is not", () => {
  const many = `a: &a {x: 1}\nb:\n${"  - *a\n".repeat(1000)}`;
  assert.equal(new ConfigDocument("f", many, {}).ok, true);
  let bomb = "a0: &a0 [x]\n";
  for (let i = 1; i < 12; i++) bomb += `a${i}: &a${i} [${Array.from({ length: 10 }, () => `*a${i - 1}`).join(", ")}]\n`;
  const { diagnostics, value } = new ConfigDocument("f", bomb, {});
  assert.equal(value, undefined);
  assert.match(diagnostics[0]?.message ?? "", /aliases expand to too many values/);
});

test("positions inside a literal block are those of its lines; other multi-line text has none", () => {
  const inside = (text: string, mark: string, env: Record<string, string> = {}): string => {
    const document = new ConfigDocument("f", text, env);
    const value = String((document.value as { a: string }).a);
    const before = value.slice(0, value.indexOf(mark)).split("\n");
    const place = { line: before.length, column: (before.at(-1) ?? "").length + 1 };
    if (!document.reportInside(["a"], value, place, { message: "here" })) return "none";
    const [diagnostic] = document.diagnostics;
    return `${diagnostic?.line}:${diagnostic?.column}`;
  };
  assert.equal(inside("a: |\n  one\n  two !\n", "!"), "3:7");
  assert.equal(inside("a: |\n\n  one\n\n    two !\n", "!"), "5:9", "empty lines, and lines further in");
  assert.equal(inside("a: |2-\n    one !", "!"), "2:9", "the indentation is given, no line follows");
  assert.equal(inside("a: | # comment\r\n  one\r\n  two !\r\n", "!"), "3:7");
  assert.equal(inside("b: &x |\n  one !\na: *x\n", "!"), "2:7");
  assert.equal(inside("a: |\n  $LONG $LONG !\n", "!", { LONG: "a long value" }), "2:15");
  assert.equal(inside("a: >\n  one\n  two !\n", "!"), "none");
  assert.equal(inside('a: "one\\ntwo !"\n', "!"), "none");
});

test("secrets: errors found before the text is parsed do not show the line, which may belong to a private key or a hash", () => {
  for (const text of [
    "tls:\n  key: |\n    -----BEGIN PRIVATE KEY-----\n  MIIEsecret\n  MIIFsecret\n",
    "htpasswd: |\n  bob:$2y$05$MIIEsecret\n",
    "htpasswd: |\n  bob:MIIEsecret-$Secret\n",
    "htpasswd: |\n  bob:MIIEsecret-${UNSET}\n",
    'keys:\n  - "MIIEsecret, "MIIFsecret"\n',
    "a:\n  b:\n    credentials: |\n      bob: MIIEsecret\n   alice: MIIFsecret\n",
  ]) {
    const { ok, diagnostics } = new ConfigDocument("a.yaml", text, {});
    assert.equal(ok, false);
    assert.doesNotMatch(JSON.stringify(diagnostics), /secret/i, text);
  }
});

test("excerpts: a field of a text that cannot be parsed is shown, though another line holds a secret", () => {
  const { diagnostics } = new ConfigDocument("a.yaml", "a:\n  key: abc\n  b: {}\n   c: 2\n", {});
  assert.deepEqual(
    diagnostics.map(({ line, source }) => [line, source]),
    [[4, "   c: 2"]],
  );
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { catalogOf } from "../src/cel/catalog.ts";
import { type Completion, completionsAt } from "./completion.ts";

const RECORD = catalogOf("record", "");
const REQUEST = catalogOf("request", "this.under(prefix) { this == prefix }\ninsider() { true }");

/** The names offered where `|` stands. */
function offered(text: string, names = REQUEST): string[] {
  const at = text.indexOf("|");
  return completionsAt(text.replace("|", ""), at, names).items.map(({ name }) => name);
}

function item(text: string, name: string): Completion | undefined {
  return completionsAt(text, text.length, REQUEST).items.find((each) => each.name === name);
}

test("variables and functions of the scope are offered for a word that has begun", () => {
  assert.deepEqual(offered("re|", RECORD), ["request", "response", "reason"]);
  assert.deepEqual(offered("re|"), ["request"]);
  assert.deepEqual(offered("1 == 1 && JW|"), ["jwt"], "in any case");
  assert.deepEqual(offered("ins|"), ["insider"]);
  assert.deepEqual(offered("has(req| == 1"), ["request"], "in the middle");
  assert.deepEqual(offered("|"), []);
  assert.ok(completionsAt("", 0, REQUEST, true).items.length > 30, "or all if they are asked for");
});

test("after a dot there are the fields of a record, and the methods of a value", () => {
  assert.deepEqual(offered("proxy.|"), [
    "bind",
    "gateway",
    "listener",
    "route",
    "requestProcessingDuration",
    "upstreamDuration",
    "responseProcessingDuration",
  ]);
  assert.deepEqual(offered("request.m|"), ["method"]);
  assert.deepEqual(offered("request.headers.|", RECORD).includes("startsWith"), true, "of an unknown value, all");
  assert.deepEqual(offered("request.path.st|"), ["startsWith", "stripPrefix", "stripSuffix"]);
  assert.deepEqual(offered("request.headers.st|"), [], "a map has none of them");
  assert.deepEqual(offered("request.headers.sp|"), ["split"]);
  assert.deepEqual(offered('"a".up|'), ["upperAscii"]);
  assert.deepEqual(offered("jwt.groups.exi|"), ["exists", "exists_one", "existsOne"]);
  assert.deepEqual(offered("request.path.und|"), ["under"]);
  assert.deepEqual(offered("math.bitS|"), ["bitShiftLeft", "bitShiftRight"]);
});

test("nothing is offered within a text, or for a word that is complete", () => {
  assert.deepEqual(offered('request.path == "req|"'), []);
  assert.deepEqual(offered("request.path == 'it\\'s req|"), []);
  assert.deepEqual(offered('request.path == "a" && req|'), ["request"]);
  assert.deepEqual(offered("request|"), []);
});

test("a completion says its type, and whether it is called with arguments", () => {
  assert.deepEqual(item("request.path", "pathAndQuery"), { name: "pathAndQuery", about: "string" });
  assert.deepEqual(item("request.path.star", "startsWith"), {
    name: "startsWith",
    call: "(…)",
    about: "(string): bool",
  });
  assert.deepEqual(item("request.path.tri", "trim"), { name: "trim", call: "()", about: "(): string" });
  assert.deepEqual(item("request.path.und", "under")?.call, "(…)");
  assert.equal(item("jwt.roles.exists", "exists")?.about, 'jwt.roles.exists(r, r == "admin")');
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { CheckRequest } from "../../../test/helpers/envoy/auth.ts";
import { HeaderValueSchema } from "../../gen/envoy/config/core/v3/base_pb.ts";
import { Decisions } from "../contract/decisions.ts";
import { NO_PSEUDO } from "../contract/header-edits.ts";
import { contextOf, RecordedTrace } from "../testing/context.ts";
import { REQUEST_PSEUDO } from "../transformations/messages.ts";
import {
  editRequest,
  type HeaderInstruction,
  headerEdits,
  headerMap,
  headerRemovals,
  type InvalidTarget,
  invalidTarget,
  joinedHeaders,
  structOf,
  textOf,
} from "./convert.ts";
import { check } from "./methods.ts";

test("values reach a service as JSON, also under keys with a meaning in JavaScript", () => {
  const values = {
    text: "t",
    number: -1.5,
    yes: true,
    none: null,
    list: [1, [], { a: "b" }],
    gone: undefined,
    constructor: 1,
  };
  Object.defineProperty(values, "__proto__", { value: "own", enumerable: true });
  const request = check.encode({ attributes: { metadataContext: { filterMetadata: { ns: structOf(values) } } } });
  const read = CheckRequest.decode(request).attributes?.metadata_context?.filter_metadata?.ns ?? {};
  assert.deepEqual(Object.keys(read).sort(), ["__proto__", "constructor", "list", "none", "number", "text", "yes"]);
  assert.equal(JSON.stringify(read.list), '[1,[],{"a":"b"}]');
  assert.deepEqual([read.none, read.number, read.yes, read.constructor], [null, -1.5, true, 1]);
});

test("values that JSON cannot express are null inside a list", () => {
  assert.equal(JSON.stringify(structOf({ list: [1n, undefined, () => 1] })), '{"list":[null,null,null]}');
});

test("a struct of a response keeps its keys, including `__proto__`, and endless nesting is rejected", () => {
  // dynamic_metadata { "__proto__": "x" }
  const field = Buffer.from("\x0a\x09__proto__\x12\x03\x1a\x01x", "latin1");
  const struct = Buffer.concat([Buffer.from([0x0a, field.length]), field]);
  const { dynamicMetadata = {} } = check.decode(Buffer.concat([Buffer.from([0x22, struct.length]), struct]));
  assert.deepEqual(Object.entries(dynamicMetadata), [["__proto__", "x"]]);
  const wrap = (number: number, bytes: Buffer): Buffer => {
    const length = [];
    for (let rest = bytes.length; ; rest >>>= 7) {
      length.push(rest > 127 ? (rest & 127) | 128 : rest);
      if (rest <= 127) break;
    }
    return Buffer.concat([Buffer.from([(number << 3) | 2, ...length]), bytes]);
  };
  let nested = Buffer.alloc(0);
  for (let depth = 0; depth < 1000; depth++) nested = Buffer.from(wrap(1, wrap(2, wrap(5, nested))));
  assert.throws(() => check.decode(wrap(4, nested)), /recursion/);
});

const option = (key: string, value: string, action: Omit<HeaderInstruction, "header"> = {}): HeaderInstruction => ({
  header: create(HeaderValueSchema, { key, rawValue: Buffer.from(value) }),
  ...action,
});

test("a header without an action replaces what the client sent; explicit actions and the older `append` are kept", () => {
  const options = [
    option("X-A", "1"),
    option("x-b", "2", { appendAction: 1 }),
    option("x-c", "3", { appendAction: 3 }),
    option("x-d", "4", { append: true }),
    option("x-e", "5", { append: false }),
  ];
  const actions = (unsaid: "add" | "set") =>
    headerEdits(options, unsaid, NO_PSEUDO).map(({ name, action }) => `${name} ${action}`);
  assert.deepEqual(actions("set"), ["x-a set", "x-b addAbsent", "x-c setPresent", "x-d add", "x-e set"]);
  assert.equal(actions("add")[0], "x-a add");
});

test("a service cannot frame a message, split a head or remove the target", () => {
  const options = [
    option("Content-Length", "5"),
    option("x-a", "1\r\nx-b: 2"),
    option("x y", "1"),
    option(":status", "200"),
    option("Connection", "x-ok"),
    option("x-ok", "1"),
  ];
  assert.deepEqual(
    headerEdits(options, "set", NO_PSEUDO).map(({ name }) => name),
    ["x-ok"],
  );
  assert.deepEqual(
    headerRemovals(["X-Gone", "Host", ":path", "Transfer-Encoding"]).map(({ name }) => name),
    ["x-gone"],
  );
});

const DECISIONS = new Decisions<InvalidTarget>("ext_auth", { invalidTarget });

test("edits of pseudo-header fields change the target; invalid ones are skipped and reported in the trace", () => {
  const trace = new RecordedTrace();
  const context = contextOf({ headers: ["x-a", "old"] }, { trace });
  const set = (name: string, value: string) => headerEdits([option(name, value)], "set", REQUEST_PSEUDO);
  editRequest(context, [...set(":path", "/new?q=1"), ...set("host", "other.example"), ...set("x-a", "new")], DECISIONS);
  editRequest(context, set(":scheme", "ftp"), DECISIONS);
  const { path, search, authority, scheme, headers } = context.request;
  assert.deepEqual([path, search, authority, scheme], ["/new", "?q=1", "other.example", "http"]);
  assert.deepEqual(headers, ["x-a", "new"]);
  assert.deepEqual(trace.events, [
    { kind: "ext_auth", reason: ':scheme of the service is not used: "ftp" is not http or https', severity: "warn" },
  ]);
});

test("values keep their bytes both ways; repeated fields are joined as RFC 9110 and RFC 9113 say", () => {
  const latin1 = Buffer.from("é").toString("latin1");
  const headers = ["x-a", latin1, "cookie", "a=1", "x-a", "b", "cookie", "b=2", "__proto__", "p"];
  assert.deepEqual(Buffer.from(headerMap(headers).headers[0]?.rawValue ?? []).toString(), "é");
  assert.equal(textOf(latin1), "é");
  assert.deepEqual(Object.entries(joinedHeaders(headers, () => true)), [
    ["x-a", "é, b"],
    ["cookie", "a=1; b=2"],
    ["__proto__", "p"],
  ]);
});

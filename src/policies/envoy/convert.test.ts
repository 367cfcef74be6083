import assert from "node:assert/strict";
import { test } from "node:test";
import { CheckRequest } from "../../../test/helpers/envoy/auth.ts";
import { structOf } from "./convert.ts";
import { check } from "./methods.ts";

test("values arrive at a service as JSON, keys that are names of JavaScript too", () => {
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

test("what JSON cannot express is null inside a list", () => {
  assert.equal(JSON.stringify(structOf({ list: [1n, undefined, () => 1] })), '{"list":[null,null,null]}');
});

test("an answer's struct has its keys as its own, `__proto__` too, and one that is nested without end is refused", () => {
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

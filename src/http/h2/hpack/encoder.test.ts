import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../../../test/helpers/property.ts";
import type { HeaderList } from "../../message/message.ts";
import { FieldSection, HpackDecoder } from "./decoder.ts";
import { HpackEncoder } from "./encoder.ts";

/** Both ends of a connection: one encodes and the other decodes. */
class Pair {
  readonly encoder = new HpackEncoder();
  readonly #decoder = new HpackDecoder({ tableSize: 4096, maxListSize: 1_000_000, maxFields: 1000 });
  readonly #section = new FieldSection();

  receive(block: Buffer): FieldSection {
    assert.equal(this.#decoder.decode(block, 0, block.length, this.#section), undefined);
    return this.#section;
  }

  /** Sends fields, asserts that they arrive, and returns the block. */
  send(...fields: string[]): Buffer {
    const split = fields.findIndex((text, i) => i % 2 === 0 && !text.startsWith(":"));
    const pseudo = split < 0 ? fields : fields.slice(0, split);
    const others = split < 0 ? [] : fields.slice(split);
    const bound = this.encoder.bound(pseudo, others);
    const out = Buffer.alloc(bound + 4, 0xaa);
    const end = this.encoder.encode(pseudo, others, out, 3);
    assert.ok(end - 3 <= bound, `${end - 3} bytes, announced ${bound}`);
    assert.ok(
      out.subarray(end).every((byte) => byte === 0xaa),
      "nothing is written after the end",
    );
    assert.equal(this.#decoder.decode(out, 3, end, this.#section), undefined);
    assert.deepEqual([...this.#section.fields], fields);
    assert.equal(this.#section.malformed, "");
    return out.subarray(3, end);
  }
}

test("repeated fields take one byte each", () => {
  const pair = new Pair();
  const request = [
    ":method",
    "GET",
    ":scheme",
    "https",
    ":authority",
    "a.example",
    "user-agent",
    "curl/8",
    "x-mine",
    "1",
  ];
  assert.ok(pair.send(...request).length > 20);
  assert.equal(pair.send(...request).length, 5);
  assert.equal(pair.send(...request, "accept-charset", "").length, 6, "an entry of the static table without a value");
});

test("fields that the sender never indexes are not indexed, whatever the tables contain", () => {
  const pair = new Pair();
  pair.send(":path", "/", "x-token", "secret");
  const fields: HeaderList = ["x-token", "secret", "x-other", "1", "x-other", "1"];
  fields.neverIndexed = new Set([":path", "x-token"]);
  const out = Buffer.alloc(pair.encoder.bound([":path", "/"], fields));
  const block = out.subarray(0, pair.encoder.encode([":path", "/"], fields, out, 0));
  const section = pair.receive(block);
  assert.deepEqual(section.fields.neverIndexed, fields.neverIndexed);
  // The name of :path from the static table (4), x-token in full, and x-other as always.
  assert.equal(block[0], 0x14);
  assert.deepEqual([block[3], block.at(-1)], [0x10, 0x80 | 62]);
  pair.send("x-token", "secret", "authorization", "secret");
  assert.equal(pair.receive(Buffer.of(0x1f, 0x08, 1, 0x61)).fields.neverIndexed, undefined, "known to be secret");
});

test("a value that keeps changing stays out of the table; one that changed once is added", () => {
  const pair = new Pair();
  pair.send("etag", "0");
  for (let i = 1; i < 50; i++) {
    assert.equal(pair.send("etag", `"${i}"`)[0], 0x0f, "literal without indexing");
    assert.equal(pair.send("etag", "0").length, 1, "the first one is still there");
  }
  assert.equal(pair.send("etag", "new")[0], 0x0f);
  assert.equal(pair.send("etag", "new")[0], 0x40 | 34, "literal with indexing");
  assert.equal(pair.send("etag", "new").length, 1);
});

test("a name is spelled out once, whatever its values are", () => {
  const pair = new Pair();
  pair.send("x-trace", "0");
  for (let i = 1; i < 50; i++) assert.ok(pair.send("x-trace", `value ${i}`).length <= 2 + 1 + 8);
});

test("secrets never enter a table, not even that of the next hop", () => {
  const pair = new Pair();
  for (const name of ["authorization", "proxy-authorization", "set-cookie", "x-api-key"]) {
    for (let i = 0; i < 3; i++)
      assert.equal((pair.send(name, "Basic abcdefghijklmnopqrst")[0] ?? 0) & 0xf0, 0x10, name);
  }
  for (let i = 0; i < 3; i++) assert.equal((pair.send("cookie", "pin=1234")[0] ?? 0) & 0xf0, 0x10);
  pair.send("cookie", "session=0123456789abcdef0123456789");
  assert.equal(pair.send("cookie", "session=0123456789abcdef0123456789").length, 1);
});

test("the table size of the peer is adopted and announced, up to 4096", () => {
  const pair = new Pair();
  pair.encoder.setTableSize(65_536);
  assert.equal(pair.send(":method", "GET").length, 1, "4096 stays, so nothing is announced");
  pair.send("x-a", "1");
  pair.encoder.setTableSize(0);
  pair.encoder.setTableSize(4096);
  assert.deepEqual([...pair.send(":method", "GET")], [0x20, 0x3f, 0xe1, 0x1f, 0x82], "the smallest, then the last");
  assert.ok(pair.send("x-a", "1").length > 1, "it has left the table");
  pair.encoder.setTableSize(100);
  assert.deepEqual([...pair.send(":method", "GET")], [0x3f, 0x45, 0x82]);
  assert.deepEqual([...pair.send(":method", "GET")], [0x82]);
  pair.encoder.setTableSize(0);
  pair.send("x-a", "1");
  for (let i = 0; i < 3; i++) assert.equal(pair.send("x-a", "1")[0], 0x00, "literal without indexing");
});

test("large values do not push out the others", () => {
  const pair = new Pair();
  pair.send("x-a", "1");
  for (const length of [2100, 2100, 3000, 4000, 5000, 5000]) pair.send("x-large", "v".repeat(length));
  assert.equal(pair.send("x-a", "1")[0], 0x80 | 62, "the newest entry");
});

test("names that keep changing are forgotten", () => {
  const pair = new Pair();
  for (let i = 0; i < 2000; i++) pair.send(`x-${i}`, "v", "x-a", "1");
  assert.ok(pair.send("x-a", "1").length <= 2, "an index");
  assert.equal(pair.send("x-0", "new")[0], 0x40, "as a name that was never seen");
});

test("random messages and table sizes arrive as they were sent", () => {
  const name = fc.oneof(
    fc.constantFrom("accept", "cookie", "authorization", "content-length", "x-a", "x-b", "grpc-status", "vary"),
    fc.stringMatching(/^[a-z0-9!#$%&'*+.^_`|~-]{1,60}$/),
  );
  const value = fc.oneof(
    fc.constantFrom("", "1", "gzip, deflate", "a".repeat(126), "b".repeat(127), "c".repeat(255), "d".repeat(3000)),
    fc.stringMatching(/^[!-~\x80-\xff]([ -~\t\x80-\xff]{0,300}[!-~\x80-\xff])?$/),
  );
  const pseudo = fc.constantFrom(":method", ":path", ":authority", ":status", ":protocol");
  const message = fc.tuple(
    fc.array(fc.tuple(pseudo, value), { maxLength: 5 }),
    fc.array(fc.tuple(name, value), { maxLength: 12 }),
  );
  const resize = fc.oneof(fc.constantFrom(0, 32, 4096, 100_000), fc.nat(4096));
  fc.assert(
    fc.property(fc.array(fc.oneof(message, message, message, resize), { maxLength: 60 }), (steps) => {
      const pair = new Pair();
      for (const step of steps) {
        if (typeof step === "number") pair.encoder.setTableSize(step);
        else pair.send(...step.flat(2));
      }
    }),
    { numRuns: 60 },
  );
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { pooledCopy, READ_SIZE, ReadBuffer } from "./read-buffer.ts";

test("small reads share one buffer, which is never lent", () => {
  const first = new ReadBuffer();
  const second = new ReadBuffer();
  const shared = first.next(0) as Buffer;
  assert.equal(second.next(0), shared);
  assert.equal(first.next(100), undefined);
  assert.equal(first.lend(shared), undefined);
});

test("a pooled copy stays as it is until it is released, and its memory is used again", () => {
  const source = Buffer.alloc(16_384, "a");
  const first = pooledCopy(source);
  source.fill("b");
  const second = pooledCopy(source);
  assert.ok(first !== undefined && second !== undefined);
  assert.equal(first.bytes.toString(), "a".repeat(16_384));
  assert.equal(second.bytes.toString(), "b".repeat(16_384));
  second.release();
  first.release();
  assert.equal(pooledCopy(source)?.bytes.buffer, first.bytes.buffer);
  assert.equal(pooledCopy(Buffer.alloc(READ_SIZE + 1)), undefined, "larger than a buffer");
  assert.equal(pooledCopy(Buffer.alloc(100)), undefined, "Node pools small ones");
});

test("after a large read, a transport has its own buffer, which is not read into while a write holds it", () => {
  const reader = new ReadBuffer();
  const shared = reader.next(0);
  const own = reader.next(READ_SIZE) as Buffer;
  assert.notEqual(own, shared);
  assert.equal(reader.next(READ_SIZE), undefined);
  const release = reader.lend(own);
  const other = reader.next(READ_SIZE) as Buffer;
  assert.notEqual(other, own);
  release?.();
  reader.lend(other);
  assert.equal(reader.next(READ_SIZE), own);
  assert.equal(reader.next(10), shared);
  reader.close();
});

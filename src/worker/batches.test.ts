import assert from "node:assert/strict";
import { test } from "node:test";
import { ChunkBatches, LogBatch } from "./batches.ts";

test("lines wait for others, for a short time, and are sent together", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const sent: string[] = [];
  const batch = new LogBatch((lines) => sent.push(Buffer.from(lines).toString()));
  batch.add("a\n");
  batch.add("b\n");
  assert.deepEqual(sent, []);
  t.mock.timers.tick(50);
  assert.deepEqual(sent, ["a\nb\n"]);
  t.mock.timers.tick(1000);
  assert.equal(sent.length, 1, "an empty batch is not sent");
});

test("many lines are sent at once, and a flush sends nothing twice", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const sent: string[] = [];
  const batch = new LogBatch((lines) => sent.push(Buffer.from(lines).toString()));
  const line = `${"x".repeat(1023)}\n`;
  for (let i = 0; i < 1025; i++) batch.add(line);
  assert.equal(sent.length, 1);
  batch.add("last\n");
  batch.flush();
  batch.flush();
  t.mock.timers.tick(1000);
  assert.equal(sent.length, 2);
  assert.equal(sent.join(""), `${line.repeat(1025)}last\n`);
});

test("lines of any length and script stay whole and in order", () => {
  const sent: Buffer[] = [];
  const batch = new LogBatch((lines) => sent.push(Buffer.from(lines)));
  const lines = ["größe €\n", `${"語".repeat(120_000)}\n`, `${"€".repeat(84_000)}\n`, "last\n"];
  for (const line of lines) batch.add(line);
  batch.flush();
  assert.equal(Buffer.concat(sent).toString(), lines.join(""));
});

test("lines written in place keep their order among those added as text, however long they are", () => {
  const sent: string[] = [];
  const batch = new LogBatch((lines) => sent.push(Buffer.from(lines).toString()));
  const write = (line: string, most: number): void => {
    const bytes = batch.room(most);
    batch.commit(batch.at + bytes.write(line, batch.at));
  };
  const rest = `${"y".repeat(250_000)}\n`;
  batch.add("a\n");
  write("b\n", 1000);
  batch.add(rest);
  write("c\n", 20_000);
  write("d\n", 1_000_000);
  batch.add("e\n");
  batch.flush();
  assert.equal(sent.join(""), `a\nb\n${rest}c\nd\ne\n`);
});

test("entries of one exporter wait for others, for a short time, and are sent together", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const sent: [string, number][] = [];
  const batches = new ChunkBatches((exporter, { count }) => sent.push([exporter, count]));
  batches.add("a", new Uint8Array(10));
  batches.add("b", new Uint8Array(10));
  batches.add("a", new Uint8Array(10));
  assert.deepEqual(sent, []);
  t.mock.timers.tick(200);
  assert.deepEqual(sent.splice(0), [
    ["a", 2],
    ["b", 1],
  ]);
  t.mock.timers.tick(1000);
  assert.deepEqual(sent, [], "an empty batch is not sent");
});

test("many entries, or large ones, are sent at once; a flush leaves nothing behind", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const sent: number[] = [];
  const batches = new ChunkBatches((_exporter, { count }) => sent.push(count));
  for (let i = 0; i < 256; i++) batches.add("a", new Uint8Array(1));
  batches.add("a", new Uint8Array(100_000));
  assert.deepEqual(sent, [256, 1]);
  batches.add("a", new Uint8Array(1));
  batches.flush();
  batches.flush();
  t.mock.timers.tick(1000);
  assert.deepEqual(sent, [256, 1, 1]);
});

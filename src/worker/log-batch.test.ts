import assert from "node:assert/strict";
import { test } from "node:test";
import { LogBatch } from "./log-batch.ts";

test("lines wait for others, for a short time, and go together", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const sent: string[] = [];
  const batch = new LogBatch((lines) => sent.push(Buffer.from(lines).toString()));
  batch.add("a\n");
  batch.add("b\n");
  assert.deepEqual(sent, []);
  t.mock.timers.tick(50);
  assert.deepEqual(sent, ["a\nb\n"]);
  t.mock.timers.tick(1000);
  assert.equal(sent.length, 1, "nothing is sent when there is nothing");
});

test("many lines go at once, and what a flush has sent is not sent again", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const sent: string[] = [];
  const batch = new LogBatch((lines) => sent.push(Buffer.from(lines).toString()));
  const line = `${"x".repeat(1023)}\n`;
  for (let i = 0; i < 65; i++) batch.add(line);
  assert.equal(sent.length, 1);
  batch.add("last\n");
  batch.flush();
  batch.flush();
  t.mock.timers.tick(1000);
  assert.equal(sent.length, 2);
  assert.equal(sent.join(""), `${line.repeat(65)}last\n`);
});

test("lines of any length and script stay whole and in order", () => {
  const sent: Buffer[] = [];
  const batch = new LogBatch((lines) => sent.push(Buffer.from(lines)));
  const lines = ["größe €\n", `${"語".repeat(30_000)}\n`, `${"€".repeat(21_000)}\n`, "last\n"];
  for (const line of lines) batch.add(line);
  batch.flush();
  assert.equal(Buffer.concat(sent).toString(), lines.join(""));
});

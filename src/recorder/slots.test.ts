import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import { SLOT } from "./layout.ts";
import { type Area, RecorderMemory } from "./memory.ts";
import { SlotReader, SlotWriter } from "./slots.ts";
import { isWhole, pathOf } from "./testing/flood.ts";

const WRITERS = 2;
const KILLS = 6;

/** A worker's memory with few slots, so that readers and the writer often meet in one, and what a reader has seen there. */
class Ring {
  readonly memory = RecorderMemory.create(8 * SLOT, 4 * SLOT);
  readonly reader = new SlotReader(this.memory);
  accepted = 0;
  torn = 0;
  newest = 0;
  #thread: Worker | undefined;

  /** Begins to write, with the number after the newest that was read. */
  async start(): Promise<void> {
    const workerData = { buffer: this.memory.buffer, first: this.newest + 1 };
    this.#thread = new Worker(new URL("./testing/flood.ts", import.meta.url), { workerData });
    await once(this.#thread, "online");
  }

  async kill(): Promise<void> {
    await this.#thread?.terminate();
  }

  scan(): void {
    const { recent, kept } = this.memory;
    for (const area of [recent, kept]) for (let slot = 0; slot < area.slots; slot++) this.#read(area, slot);
  }

  #read(area: Area, slot: number): void {
    const { fields } = this.reader;
    if (!this.reader.read(area, slot)) return;
    const path = this.reader.text(0, fields.pathLength);
    this.accepted++;
    if (!isWhole(fields) || path !== pathOf(fields.number).slice(0, path.length) || path.length === 0) this.torn++;
    this.newest = Math.max(this.newest, fields.number);
  }
}

test("no reader accepts a record that was written in part, whatever the writers do and however they end", async () => {
  const rings = Array.from({ length: WRITERS }, () => new Ring());
  await Promise.all(rings.map((ring) => ring.start()));
  for (let kill = 0; kill < KILLS; kill++) {
    const ring = rings[kill % WRITERS] as Ring;
    const enough = ring.accepted + 40_000;
    while (ring.accepted < enough) {
      for (const each of rings) for (let i = 0; i < 200; i++) each.scan();
      await delay(1);
    }
    const { newest } = ring;
    await ring.kill();
    ring.scan();
    assert.ok(ring.newest >= newest, "what was read before is there after the end of the writer, or something newer");
    await ring.start();
  }
  await Promise.all(rings.map((ring) => ring.kill()));
  assert.deepEqual(
    rings.map(({ torn }) => torn),
    rings.map(() => 0),
  );
});

test("a slot that its writer has not closed is not read, and nothing of an earlier record remains in the next one", () => {
  const memory = RecorderMemory.create(SLOT, SLOT);
  const writer = new SlotWriter(memory);
  const reader = new SlotReader(memory);
  const first = writer.open(memory.recent, 0);
  first.number = 1;
  first.status = 403;
  first.received = 17;
  assert.equal(reader.read(memory.recent, 0), false);
  writer.close();
  assert.equal(reader.read(memory.recent, 0), true);
  assert.equal(reader.fields.status, 403);
  // The number alone does not make it the same record.
  writer.open(memory.recent, 0).number = 1;
  assert.equal(reader.read(memory.recent, 0), false);
  writer.close();
  assert.equal(reader.read(memory.recent, 0), true);
  const { status, received } = reader.fields;
  assert.deepEqual({ status, received }, { status: 0, received: 0 });
});

test("texts that do not fit are cut at the end of the slot, not written into the next", () => {
  const memory = RecorderMemory.create(2 * SLOT, SLOT);
  const writer = new SlotWriter(memory);
  const reader = new SlotReader(memory);
  writer.open(memory.recent, 1).number = 1;
  writer.close();
  const fields = writer.open(memory.recent, 0);
  fields.number = 2;
  const id = writer.write("id", 0);
  const path = writer.write("x".repeat(500), id);
  fields.pathLength = path;
  writer.close();
  assert.equal(reader.read(memory.recent, 1), true);
  assert.equal(reader.fields.number, 1);
  assert.equal(reader.read(memory.recent, 0), true);
  assert.equal(reader.text(0, id + path), `id${"x".repeat(path)}`);
  assert.ok(path >= 64 && path < SLOT);
});

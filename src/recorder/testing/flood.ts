/** A thread that writes records as fast as it can, until it is killed. Every value of a record follows from its number. */
import { workerData } from "node:worker_threads";
import type { SlotFields } from "../layout.ts";
import { RecorderMemory } from "../memory.ts";
import { SlotWriter } from "../slots.ts";

/** The path of a record: as long as there is room. */
export function pathOf(number: number): string {
  return `/${number}`.repeat(8);
}

/** Whether the numbers of a slot belong to one record. */
export function isWhole({
  number,
  duration,
  received,
  sent,
  trace0,
  trace3,
  client3,
  status,
  place,
}: SlotFields): boolean {
  const low = number % 60_000;
  return (
    duration === number &&
    received === number * 2 &&
    sent === number * 3 &&
    [trace0, trace3, client3, status, place].every((each) => each === low)
  );
}

function flood(memory: RecorderMemory, first: number): void {
  const writer = new SlotWriter(memory);
  const { recent, kept } = memory;
  for (let number = first; ; number++) {
    const fields = writer.open(recent, number % recent.slots);
    const low = number % 60_000;
    fields.number = number;
    fields.duration = number;
    fields.received = number * 2;
    fields.sent = number * 3;
    fields.trace0 = low;
    fields.trace3 = low;
    fields.client3 = low;
    fields.status = low;
    fields.place = low;
    const path = pathOf(number);
    fields.pathLength = writer.write(path, 0);
    writer.close();
    writer.copyTo(kept, number % kept.slots);
  }
}

const { buffer, first } = (workerData ?? {}) as { buffer?: SharedArrayBuffer; first?: number };
if (buffer !== undefined && first !== undefined) flood(new RecorderMemory(buffer), first);

/** A thread that writes samples as fast as it can, until it is killed. */
import { workerData } from "node:worker_threads";
import { SampleRing } from "../sample-ring.ts";

/** Bytes and length follow from the number. */
export function entryOf(number: number): Buffer {
  return Buffer.from(`${number} `.repeat(1 + (number % 13)));
}

const { buffer, first } = (workerData ?? {}) as { buffer?: SharedArrayBuffer; first?: number };
if (buffer !== undefined && first !== undefined) {
  const ring = new SampleRing(buffer);
  for (let number = first; ; number++) ring.add(entryOf(number));
}

import type { SampledRequest } from "./sample.ts";
import type { SampleRing } from "./sample-ring.ts";

/** The samples in the rings of all workers that arrived at `since`, epoch ms, or later; the oldest first. */
export function samplesIn(rings: readonly SampleRing[], since: number): SampledRequest[] {
  // Workers write JSON of this type.
  const all = rings.flatMap((ring) => ring.entries().map((entry) => JSON.parse(entry.toString()) as SampledRequest));
  return all.filter(({ time }) => Date.parse(time) >= since).sort((a, b) => (a.time < b.time ? -1 : 1));
}

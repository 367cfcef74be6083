import type { Explanation } from "../../rehearsal/explanation.ts";
import { inPod } from "./records.ts";
import { type OfReplica, sumOf } from "./replica.ts";

/** What happened to the newest request with an id, at whichever replica has its record; undefined if no replica has it. */
export function newestExplanation(
  answers: readonly OfReplica<Explanation>[],
): (Explanation & Required<Pick<Explanation, "record">>) | undefined {
  const found = answers.flatMap(({ pod, answer }) =>
    answer.record === undefined ? [] : [{ ...answer, record: inPod(answer.record, pod) }],
  );
  const [newest] = found.toSorted((a, b) => Date.parse(b.record.time) - Date.parse(a.record.time));
  const alike = sumOf(found, (each) => each.alike ?? 1);
  return newest && { ...newest, ...(alike > 1 && { alike }) };
}

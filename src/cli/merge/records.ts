import type { RecordAnswer, RequestRecord } from "../../recorder/records.ts";
import { type OfReplica, sumOf } from "./replica.ts";

/** The records of all replicas, each with its pod, the newest first. `limit`: how many at most; default: all. */
export function mergeRecords(
  answers: readonly OfReplica<RecordAnswer>[],
  limit = Number.POSITIVE_INFINITY,
): RecordAnswer {
  const records = answers.flatMap(({ pod, answer }) => answer.records.map((record) => inPod(record, pod)));
  return {
    records: records.sort((a, b) => endOf(b) - endOf(a)).slice(0, limit),
    found: sumOf(answers, ({ answer }) => answer.found),
    // Clocks of replicas differ: what each has until this time has been received.
    until: answers.map(({ answer }) => answer.until).sort()[0] ?? "",
    ...mergeReach(answers.map(({ answer }) => answer)),
  };
}

type Reach = Pick<RecordAnswer, "requests" | "completeSince" | "keptSince">;

/** How far the records of all replicas reach back: complete where those of each are. */
export function mergeReach(answers: readonly Reach[]): Reach {
  const complete = answers.flatMap(({ completeSince }) => completeSince ?? []).sort();
  const kept = answers.flatMap(({ keptSince }) => keptSince ?? []).sort();
  const [completeSince, keptSince] = [complete.at(-1), kept[0]];
  return {
    requests: sumOf(answers, ({ requests }) => requests),
    ...(completeSince !== undefined && { completeSince }),
    ...(keptSince !== undefined && { keptSince }),
  };
}

/** The record with the pod that it comes from. */
export function inPod(record: RequestRecord, pod: string | undefined): RequestRecord {
  return pod === undefined ? record : { ...record, pod };
}

function endOf({ time, duration }: RequestRecord): number {
  return Date.parse(time) + duration;
}

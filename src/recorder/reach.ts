import type { RecordAnswer } from "./records.ts";

/** How far records reach back. */
type RecordsReach = Pick<RecordAnswer, "completeSince" | "keptSince">;

/** Since when a request would have been found in all of these. */
export function reachText(answers: readonly RecordsReach[]): string {
  const complete = answers
    .flatMap(({ completeSince }) => completeSince ?? [])
    .sort()
    .at(-1);
  const kept = answers.flatMap(({ keptSince }) => keptSince ?? []).sort()[0];
  if (kept === undefined) return "no request has been recorded yet";
  if (complete === undefined) return `records reach back to ${kept}`;
  return `records of all requests reach back to ${complete}, those of failed and slow ones to ${kept}`;
}

/** No request, or none that still has a record, has this id. */
export class NoRecord extends Error {
  constructor(id: string, answers: readonly RecordsReach[]) {
    super(`no record of the request ${JSON.stringify(id)}: ${reachText(answers)}`);
  }
}

/** The list of requests: records in bounded number, the newest first, standing still or following. */
import type { RequestRecord } from "../src/recorder/records.ts";
import { keyOf } from "../src/report/recorded.ts";

/** Most requests in the list; the oldest leave it. */
export const MOST = 1000;

export interface RequestList {
  /** What is shown, the newest first. */
  readonly shown: readonly RequestRecord[];
  /** All that is known; while the list follows, the same. */
  readonly known: readonly RequestRecord[];
  readonly follows: boolean;
}

export const EMPTY: RequestList = { shown: [], known: [], follows: true };

/** The list with records that were received, of which it may have some already. */
export function received(list: RequestList, records: readonly RequestRecord[]): RequestList {
  const keys = new Set(list.known.map(keyOf));
  const news = records.filter((record) => !keys.has(keyOf(record)));
  if (news.length === 0) return list;
  // They arrive by when requests ended, and requests are shown by when they began.
  const known = [...news, ...list.known].sort((a, b) => (a.time < b.time ? 1 : -1)).slice(0, MOST);
  // What stands still are the first records that were received.
  return { ...list, known, shown: list.follows || list.known.length === 0 ? known : list.shown };
}

/** The list that follows the newest requests, or stands still. */
export function following(list: RequestList, follows: boolean): RequestList {
  return { ...list, follows, shown: follows ? list.known : list.shown };
}

/** Requests that are newer than those shown. */
export function newer({ shown, known }: RequestList): number {
  const [first] = shown;
  const index = first === undefined ? -1 : known.indexOf(first);
  return index < 0 ? known.length : index;
}

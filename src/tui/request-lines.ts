import { columnsOf, fit } from "../report/text.ts";
import { type FollowedRequest, factsOf } from "./requests.ts";

/** The lines of the list of requests: when it began, the pod if there are several, the request, its status, duration and what decided. */

/** Widths of the columns; 0: there is no room for the column. */
interface RequestColumns {
  readonly time: number;
  readonly pod: number;
  readonly request: number;
  readonly why: number;
}

const STATUS_WIDTH = 6;
const DURATION_WIDTH = 7;
/** `12:03:04`, or with milliseconds if the pane is wide. */
const TIME_WIDTH = 8;
const LONG_TIME_WIDTH = 12;
const WIDE = 90;
/** Columns for the end of a pod's name, in which the pods of a Deployment differ: as much as fits `…x2x5k`, or more if the pane is not narrow. */
const POD_WIDTH = 6;
const LONG_POD_WIDTH = 16;
const NARROW = 60;
/** Where fewer columns are left, the reason is only in the header. */
const MIN_WHY = 16;

/** The columns for a pane with so many columns of text in which these requests are visible. */
export function requestColumns(width: number, visible: readonly FollowedRequest[]): RequestColumns {
  const time = width >= WIDE ? LONG_TIME_WIDTH : TIME_WIDTH;
  const most = width < NARROW ? POD_WIDTH : LONG_POD_WIDTH;
  const pod = Math.min(most, Math.max(0, ...visible.map((request) => columnsOf(request.pod))));
  // A mark before the first column, two spaces between columns.
  const rest = width - 1 - time - (pod === 0 ? 0 : pod + 2) - 2 - 2 - STATUS_WIDTH - 2 - DURATION_WIDTH;
  const longest = Math.max("Request".length, ...visible.map((request) => columnsOf(factsOf(request).what)));
  const request = Math.max(
    1,
    Math.min(longest, rest - MIN_WHY < MIN_WHY ? rest : Math.max(MIN_WHY, Math.floor(rest / 2))),
  );
  const why = rest - request - 2;
  return why < MIN_WHY ? { time, pod, request: Math.max(1, rest), why: 0 } : { time, pod, request, why };
}

/** The header of the list. */
export function requestHeader(columns: RequestColumns): string {
  return line(columns, " ", ["Time", "Pod", "Request", "Status", "Took", "Why"]);
}

/** One line of the list, not cut at the end. */
export function requestLine(request: FollowedRequest, columns: RequestColumns, selected: boolean): string {
  const { time, what, status, took, why } = factsOf(request);
  const pod = columnsOf(request.pod) <= columns.pod ? request.pod : `…${request.pod.slice(1 - columns.pod)}`;
  return line(columns, selected ? "›" : " ", [time, pod, what, status, took === undefined ? "" : brief(took), why]);
}

type Texts = readonly [time: string, pod: string, request: string, status: string, took: string, why: string];

function line(columns: RequestColumns, mark: string, [time, pod, request, status, took, why]: Texts): string {
  return [
    `${mark}${time.slice(0, columns.time).padEnd(columns.time)}`,
    ...(columns.pod === 0 ? [] : [fit(pod, columns.pod)]),
    fit(request, columns.request),
    fit(status, STATUS_WIDTH),
    took.padStart(DURATION_WIDTH),
    ...(columns.why === 0 ? [] : [why]),
  ].join("  ");
}

/** Microseconds with three digits: `289 µs`, `11.4 ms`, `1.25 s`. */
function brief(microseconds: number): string {
  if (microseconds < 1000) return `${Math.round(microseconds)} µs`;
  const [value, unit] = microseconds < 999_500 ? [microseconds / 1000, "ms"] : [microseconds / 1_000_000, "s"];
  return `${Number(value.toPrecision(3))} ${unit}`;
}

/** The columns of the list of requests, and which of them this browser shows. */
import { computed, signal } from "@preact/signals";
import type { RequestRecord } from "../src/recorder/records.ts";
import { decidedBy, durationText, methodOf, statusOf, urlOf } from "../src/report/recorded.ts";
import { replicas } from "./ask.ts";
import type { FilterField } from "./filter.ts";
import { toneOf } from "./parts/words.ts";

export interface Column {
  /** `pages/requests.css` says how wide `.column-NAME` is, and below which width of the window it is left out. */
  readonly name: string;
  readonly heading: string;
  /** Empty: the request has none. */
  readonly text: (record: RequestRecord) => string;
  /** The class for the color of the value. */
  readonly tone?: (record: RequestRecord) => string;
  /** The field of the filter that a click on the value sets. */
  readonly filter?: FilterField;
  /** Not shown until somebody chooses it. */
  readonly extra?: true;
}

/** In the order in which they are shown. */
const COLUMNS: readonly Column[] = [
  { name: "time", heading: "time", text: ({ time }) => time.slice(11, 23) },
  { name: "pod", heading: "replica", text: ({ pod = "" }) => pod },
  { name: "method", heading: "method", text: methodOf, filter: "method" },
  { name: "url", heading: "host and path", text: urlOf },
  { name: "status", heading: "status", text: statusOf, tone: toneOf, filter: "status" },
  { name: "took", heading: "took", text: ({ duration }) => durationText(duration) },
  { name: "route", heading: "route", text: ({ route = "" }) => route, filter: "route" },
  { name: "backend", heading: "backend", text: ({ backend = "" }) => backend, filter: "backend", extra: true },
  { name: "endpoint", heading: "endpoint", text: ({ endpoint = "" }) => endpoint, filter: "endpoint" },
  { name: "attempts", heading: "attempts", text: ({ attempts }) => String(attempts ?? ""), extra: true },
  { name: "received", heading: "B received", text: ({ received }) => String(received), extra: true },
  { name: "sent", heading: "B sent", text: ({ sent }) => String(sent), extra: true },
  { name: "client", heading: "client", text: ({ client = "" }) => client, extra: true },
  { name: "id", heading: "id", text: ({ id = "" }) => id, extra: true },
  { name: "decided", heading: "decided by", text: decidedBy },
];

/** The row is a link by this one, so it is always shown. */
const ALWAYS = "url";
/** Which replica had the request; only where several are shown as one gateway. */
const POD = "pod";
const STORED = "tracegate.columns";

const names = signal<ReadonlySet<string>>(
  stored() ?? new Set(COLUMNS.flatMap((each) => (each.extra ? [] : each.name))),
);

/** The columns that can be shown. */
export const choices = computed(() => COLUMNS.filter(({ name }) => name !== POD || replicas.value.length > 1));

/** The columns that are shown. */
export const columns = computed(() => choices.value.filter(({ name }) => name === ALWAYS || names.value.has(name)));

/** Shows or hides a column, in this browser also from now on. */
export function showColumn(name: string, shown: boolean): void {
  const next = new Set(names.value);
  if (shown) next.add(name);
  else next.delete(name);
  names.value = next;
  try {
    localStorage.setItem(STORED, [...next].join(" "));
  } catch {
    // The browser keeps nothing for this page; the choice lasts until it is closed.
  }
}

/** What an earlier visit chose; columns that no longer exist mean nothing. */
function stored(): ReadonlySet<string> | undefined {
  try {
    const text = localStorage.getItem(STORED);
    return text === null
      ? undefined
      : new Set(text.split(" ").filter((name) => COLUMNS.some((each) => each.name === name)));
  } catch {
    return undefined;
  }
}

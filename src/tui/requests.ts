import { type Fields, fieldsOf } from "../base/fields.ts";
import { startTimeOf } from "../report/fields.ts";
import { outcomeOf } from "../report/outcome.ts";
import { type Row, rowsOf } from "../report/rows.ts";
import { textOf } from "../report/summaries.ts";
import { harmless } from "../report/text.ts";

/** The requests that the view of many requests has, in bounded memory; no terminal, no clock. */

/** One followed request, with its events so far. */
export interface FollowedRequest {
  /** In the stream, from 1. */
  readonly number: number;
  /** The name of its pod; empty if there is only one proxy. */
  readonly pod: string;
  readonly events: readonly Fields[];
  /** Characters of each event. */
  readonly lengths: readonly number[];
  /** Characters of all events. */
  readonly length: number;
  /** Events that are not kept, because there are too many: older ones of a stream, such as messages, else later ones. */
  readonly omitted: number;
}

export interface RequestList {
  /** In the order of their numbers. */
  readonly requests: readonly FollowedRequest[];
  /** Characters of all events. */
  readonly length: number;
  /** The highest number so far: events of a request with a lower one that is not in the list are ignored. */
  readonly last: number;
  /** Requests that were dropped from the list for newer ones. */
  readonly gone: number;
  /** Requests that were not added, because the list was full while it had to stand still. */
  readonly missed: number;
}

export const NO_REQUESTS: RequestList = { requests: [], length: 0, last: 0, gone: 0, missed: 0 };

/** One event of a request. */
export interface FollowedEvent {
  readonly number: number;
  readonly pod: string;
  readonly event: Fields;
  /** Characters of its JSON. */
  readonly length: number;
}

/** Most requests in the list. */
export const MAX_REQUESTS = 1000;
/** Characters of events for which requests are dropped; at most twice as many are kept. */
const MAX_LENGTH = 32 * 1024 * 1024;
/** Limits of one request. */
const MAX_EVENTS = 1000;
const MAX_REQUEST_LENGTH = 4 * 1024 * 1024;

/**
 * The list with one more event. If the list is full, a new request takes the place of the oldest ones; with `still`, it is counted but not
 * added, so that what the reader looks at stays.
 */
export function withEvent(list: RequestList, added: FollowedEvent, still: boolean): RequestList {
  const { number, pod, event, length } = added;
  if (number <= list.last) return withLaterEvent(list, added);
  const last = number;
  let { requests, length: total, gone } = list;
  if (still && isFull(requests.length, total)) return { ...list, last, missed: list.missed + 1 };
  while (isFull(requests.length, total)) {
    total -= requests[0]?.length ?? 0;
    requests = requests.slice(1);
    gone++;
  }
  const request = { number, pod, events: [event], lengths: [length], length, omitted: 0 };
  return { ...list, requests: [...requests, request], length: total + length, last, gone };
}

function isFull(requests: number, length: number): boolean {
  return requests >= MAX_REQUESTS || (requests > 0 && length >= MAX_LENGTH);
}

function withLaterEvent(list: RequestList, { number, event, length }: FollowedEvent): RequestList {
  // Most events are of the newest requests.
  const index = list.requests.findLastIndex((request) => request.number === number);
  const request = list.requests[index];
  if (request === undefined) return list;
  const { type } = fieldsOf(event.message);
  const isLast = type === "requestFinished" || type === "endLost";
  const hasRoom = isLast || hasRoomIn(request, list);
  const roomy = hasRoom ? request : withoutOldMessages(request);
  const keeps = hasRoom || hasRoomIn(roomy, list);
  const changed = keeps
    ? {
        ...roomy,
        events: [...roomy.events, event],
        lengths: [...roomy.lengths, length],
        length: roomy.length + length,
      }
    : { ...roomy, omitted: roomy.omitted + 1 };
  return {
    ...list,
    requests: list.requests.with(index, changed),
    length: list.length + changed.length - request.length,
  };
}

function hasRoomIn(request: FollowedRequest, list: RequestList): boolean {
  return request.events.length < MAX_EVENTS && request.length < MAX_REQUEST_LENGTH && list.length < 2 * MAX_LENGTH;
}

/** What streams have without end. */
const OF_STREAMS: ReadonlySet<unknown> = new Set(["streamMessage", "messagesOmitted", "streamProgress"]);

/** Without the older half of its events about its stream, so that a stream that lives for hours is seen as it is now. */
function withoutOldMessages(request: FollowedRequest): FollowedRequest {
  const isOfStream = (event: Fields): boolean => OF_STREAMS.has(fieldsOf(event.message).type);
  let left = Math.ceil(request.events.filter(isOfStream).length / 2);
  const kept = request.events.map((event) => !isOfStream(event) || left-- <= 0);
  const events = request.events.filter((_, index) => kept[index]);
  const lengths = request.lengths.filter((_, index) => kept[index]);
  const length = lengths.reduce((sum, each) => sum + each, 0);
  return { ...request, events, lengths, length, omitted: request.omitted + request.events.length - events.length };
}

/** What the list shows of a request. */
interface RequestFacts {
  /** When it began, `12:03:04.123` UTC; empty if unknown. */
  readonly time: string;
  /** `GET /api/cart?debug=1`, or what kind of connection it is. */
  readonly what: string;
  /** `503`, `grpc14`, `closed`; `…` while it runs, `?` if its end was dropped. */
  readonly status: string;
  /** Microseconds until its latest event. */
  readonly took: number | undefined;
  /** What decided its outcome; if nothing but the route did, that. */
  readonly why: string;
  readonly severity: Row["severity"];
  /** What a filter searches, in lower case. */
  readonly searchable: string;
}

/** The facts are asked for at every drawing. A request with another event is another object. */
const known = new WeakMap<FollowedRequest, RequestFacts>();

export function factsOf(request: FollowedRequest): RequestFacts {
  const facts = known.get(request) ?? readFacts(request);
  known.set(request, facts);
  return facts;
}

function readFacts({ events, pod }: FollowedRequest): RequestFacts {
  const rows = rowsOf(events);
  const outcome = outcomeOf(rows);
  const { method, pathAndQuery } = fieldsOf(
    fieldsOf(rows.find(({ message }) => message.type === "requestSnapshot")?.message.requestState).request,
  );
  const what = harmless([method, pathAndQuery].map(textOf).filter(Boolean).join(" ")) || outcome.request;
  const facts = {
    time: startTimeOf(events).slice(11, 23),
    what,
    status: harmless(statusOf(rows)),
    took: rows.findLast(({ end }) => end !== undefined)?.end,
    why: outcome.why || (outcome.route === "" ? "" : `route ${outcome.route}`),
    severity: outcome.severity,
  };
  const { request, route, status } = outcome;
  const words = [facts.time, what, request, facts.status, status, route, facts.why, pod];
  return { ...facts, searchable: words.join(" ").toLowerCase() };
}

function statusOf(rows: readonly Row[]): string {
  const finished = rows.findLast(({ message }) => message.type === "requestFinished")?.message;
  if (finished === undefined) return rows.some(({ message }) => message.type === "endLost") ? "?" : "…";
  const grpc = fieldsOf(finished.grpc).status;
  if (typeof grpc === "number" && grpc !== 0) return `grpc${grpc}`;
  return textOf(finished.status) || "closed";
}

/** Whether a request has every word of the filter, in whatever case. */
export function matchesFilter(request: FollowedRequest, filter: string): boolean {
  const words = filter.toLowerCase().split(/\s+/);
  return words.every((word) => factsOf(request).searchable.includes(word));
}

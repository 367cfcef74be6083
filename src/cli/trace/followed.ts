/** Requests that proxies stream at the same time, numbered together. */
import { type Fields, fieldsOf } from "../../base/fields.ts";
import { CliError, describe } from "../runner/errors.ts";
import type { TraceItem } from "./source.ts";

/** An event, or word of the connection. */
export type FollowedItem = Extract<TraceItem, { readonly kind: "event" | "progress" }>;

/** What a stream has sent, or the failure that has ended it. `pod`: its name; undefined if there is only one proxy. */
export type FollowedOutput =
  | { readonly pod: string | undefined; readonly record: FollowedItem; readonly error?: undefined }
  | { readonly pod: string | undefined; readonly record?: undefined; readonly error: unknown };

/** The stream of the only proxy. */
export async function* ofOne(events: AsyncGenerator<FollowedItem>): AsyncGenerator<FollowedOutput> {
  try {
    for await (const record of events) yield { pod: undefined, record };
  } catch (error) {
    yield { pod: undefined, error };
  }
}

const END_LOST: Fields = { eventStart: null, eventEnd: null, severity: "warn", message: { type: "endLost" } };

/** What arrives while requests are followed. `pod` is that of `FollowedOutput`. */
export type Followed =
  | {
      readonly kind: "event";
      /** The request, among those of all proxies, from 1. */
      readonly number: number;
      readonly pod: string | undefined;
      readonly event: Fields;
      readonly raw: string;
      /** The last event of its request. */
      readonly last: boolean;
    }
  /** The last events of this request are missing; `event` says so in their place. */
  | { readonly kind: "lost"; readonly number: number; readonly pod: string | undefined; readonly event: Fields }
  /** An event of no request. `text`: what is missing, with the pod; undefined if nothing is. */
  | {
      readonly kind: "notice";
      readonly pod: string | undefined;
      readonly event: Fields;
      readonly raw: string;
      readonly text: string | undefined;
    }
  /** A word of the connection, or why the stream of one of several pods broke. */
  | { readonly kind: "progress"; readonly text: string }
  /** Comes last. `failure`: the stream of the only proxy broke, or ended before it should. */
  | { readonly kind: "end"; readonly requests: number; readonly failure: unknown };

/** What the proxies stream until that ends, or `count` requests of all proxies together. Pods come and go: what happens to their streams is progress. */
export async function* followed(streams: AsyncIterable<FollowedOutput>, count: number): AsyncGenerator<Followed> {
  const open = new Map<string, number>();
  let early = true;
  let requests = 0;
  let failure: unknown;
  // Each pod would continue up to its own limit.
  const isEnough = (pod: string | undefined) => pod !== undefined && requests === count && open.size === 0;
  for await (const { pod, record, error } of streams) {
    if (record === undefined) {
      if (pod === undefined) failure = error;
      else {
        yield { kind: "progress", text: `${at(pod)}${describe(error)}` };
        for (const key of open.keys()) if (key.startsWith(keyOf(pod, ""))) yield* lose(open, key, pod);
        if (isEnough(pod)) break;
      }
      continue;
    }
    if (record.kind === "progress") {
      yield { kind: "progress", text: `${at(pod)}${record.text}` };
      continue;
    }
    const { event, raw } = record;
    const message = fieldsOf(event.message);
    if (typeof event.request !== "number") {
      if (message.type === "followEnded" && (message.reason !== "shutdown" || pod !== undefined)) early = false;
      yield { kind: "notice", pod, event, raw, text: missingText(message, pod) };
      // Other versions of the gateway send no list.
      const ended = message.type === "dropped" && Array.isArray(message.ended) ? message.ended : [];
      for (const request of ended) yield* lose(open, keyOf(pod, String(request)), pod);
      if (isEnough(pod)) break;
      continue;
    }
    const key = keyOf(pod, String(event.request));
    let number = open.get(key);
    if (number === undefined) {
      if (requests === count) continue;
      number = ++requests;
      open.set(key, number);
    }
    const last = message.type === "requestFinished" || message.type === "traceEnded";
    if (last) open.delete(key);
    yield { kind: "event", number, pod, event, raw, last };
    if (last && isEnough(pod)) break;
  }
  yield { kind: "end", requests, failure: failure ?? (early && requests < count ? endedEarly() : undefined) };
}

function keyOf(pod: string | undefined, request: string): string {
  return `${pod} ${request}`;
}

function* lose(open: Map<string, number>, key: string, pod: string | undefined): Generator<Followed> {
  const number = open.get(key);
  if (number === undefined) return;
  open.delete(key);
  yield { kind: "lost", number, pod, event: END_LOST };
}

function endedEarly(): CliError {
  return new CliError("failure", "the stream ended early", { why: "the proxy is shutting down" });
}

function missingText(message: Fields, pod: string | undefined): string | undefined {
  if (message.type === "followEnded")
    return message.reason === "shutdown" ? `${at(pod)}the gateway has shut down` : undefined;
  if (message.type === "dropped")
    return `${at(pod)}${message.count} events are missing, also the last ones of ${message.requests} requests: they were not read in time`;
  if (message.type === "workerDied")
    return `${at(pod)}${message.worker} has died${message.held === true ? "; requests that it held for --where are missing" : ""}`;
  return `${at(pod)}${String(message.type)}`;
}

function at(pod: string | undefined): string {
  return pod === undefined ? "" : `${pod}: `;
}

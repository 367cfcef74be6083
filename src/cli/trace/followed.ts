/** Requests that proxies stream at the same time, numbered together. */
import { type Fields, fieldsOf } from "../../base/fields.ts";
import { CliError, describe } from "../runner/errors.ts";
import type { TraceItem } from "./source.ts";

/** The stream of one proxy. */
export interface FollowedProxy {
  /** The name of its pod; undefined if there is only one proxy. */
  readonly pod: string | undefined;
  /** Events, and word of the connection. */
  readonly events: AsyncGenerator<FollowedItem>;
}

export type FollowedItem = Extract<TraceItem, { readonly kind: "event" | "progress" }>;

/** What arrives while requests are followed. `pod` is that of `FollowedProxy`. */
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
  /** Comes last. `failure`: the stream broke, or ended before it should. */
  | { readonly kind: "end"; readonly requests: number; readonly failure: unknown };

/** What the proxies stream until all streams have ended, or `count` requests of all proxies together. */
export async function* followed(proxies: readonly FollowedProxy[], count: number): AsyncGenerator<Followed> {
  const open = new Map<string, number>();
  const ended = new Set<string | undefined>();
  let requests = 0;
  let failure: unknown;
  for await (const { pod, record, error } of merged(proxies)) {
    if (record === undefined) {
      failure = error;
      if (pod !== undefined) yield { kind: "progress", text: `${at(pod)}${describe(error)}` };
      continue;
    }
    if (record.kind === "progress") {
      yield { kind: "progress", text: `${at(pod)}${record.text}` };
      continue;
    }
    const { event, raw } = record;
    const message = fieldsOf(event.message);
    if (typeof event.request !== "number") {
      if (message.type === "followEnded" && message.reason !== "shutdown") ended.add(pod);
      yield { kind: "notice", pod, event, raw, text: missingText(message, pod) };
      continue;
    }
    const key = `${pod} ${event.request}`;
    let number = open.get(key);
    if (number === undefined) {
      if (requests === count) continue;
      number = ++requests;
      open.set(key, number);
    }
    const last = message.type === "requestFinished" || message.type === "traceEnded";
    if (last) open.delete(key);
    yield { kind: "event", number, pod, event, raw, last };
    // Each pod would continue up to its own limit.
    if (last && proxies.length > 1 && requests === count && open.size === 0) break;
  }
  const cut = requests < count ? proxies.find(({ pod }) => !ended.has(pod)) : undefined;
  yield { kind: "end", requests, failure: failure ?? (cut && endedEarly(cut)) };
}

function endedEarly({ pod }: FollowedProxy): CliError {
  return new CliError("failure", `the stream${pod === undefined ? "" : ` of ${pod}`} ended early`, {
    why: "the proxy is shutting down",
  });
}

function missingText(message: Fields, pod: string | undefined): string | undefined {
  if (message.type === "followEnded") return undefined;
  if (message.type === "dropped")
    return `${at(pod)}${message.count} events are missing, also the last ones of ${message.requests} requests: they were not read in time`;
  if (message.type === "workerDied")
    return `${at(pod)}${message.worker} has died${message.held === true ? "; requests that it held for --where are missing" : ""}`;
  return `${at(pod)}${String(message.type)}`;
}

function at(pod: string | undefined): string {
  return pod === undefined ? "" : `${pod}: `;
}

type Item =
  | { readonly pod: string | undefined; readonly record: FollowedItem; readonly error?: undefined }
  | { readonly pod: string | undefined; readonly record?: undefined; readonly error: unknown };

/** The events of all proxies as they arrive; a slow reader slows all of them down. */
async function* merged(proxies: readonly FollowedProxy[]): AsyncGenerator<Item> {
  interface Step {
    readonly proxy: FollowedProxy;
    readonly item: Item | undefined;
  }
  const step = (proxy: FollowedProxy): Promise<Step> =>
    proxy.events.next().then(
      ({ done, value }) => ({ proxy, item: done === true ? undefined : { pod: proxy.pod, record: value } }),
      (error: unknown) => ({ proxy, item: { pod: proxy.pod, error } }),
    );
  const waiting = new Map(proxies.map((proxy) => [proxy, step(proxy)]));
  while (waiting.size > 0) {
    const { proxy, item } = await Promise.race(waiting.values());
    // Last in line: a busy proxy must not keep the others waiting.
    waiting.delete(proxy);
    if (item?.record !== undefined) waiting.set(proxy, step(proxy));
    if (item !== undefined) yield item;
  }
}

/** Prints followed requests, of one proxy or of all replicas of a Gateway. */
import { counted } from "../../base/counted.ts";
import { type Fields, fieldsOf } from "../../base/fields.ts";
import { startTimeOf } from "../../report/fields.ts";
import { outcomeLine, outcomeOf } from "../../report/outcome.ts";
import { rowsOf } from "../../report/rows.ts";
import { type Context, write } from "../runner/context.ts";
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

interface Open {
  readonly number: number;
  readonly pod: string | undefined;
  readonly events: Fields[];
}

/**
 * Prints what the proxies stream until all streams have ended, or `count` requests of all proxies together: as text, a line for each
 * request at its end; as JSON, a line for each event, with the name of the pod. Requests are numbered across proxies. Standard error
 * says what is missing.
 * @throws CliError if a stream breaks, once the others have ended
 */
export async function printFollowed(
  proxies: readonly FollowedProxy[],
  { count, json }: { readonly count: number; readonly json: boolean },
  context: Context,
): Promise<void> {
  const open = new Map<string, Open>();
  let requests = 0;
  let failure: unknown;
  const line = ({ number, pod, events }: Open): Promise<void> => {
    // The time as in the record of the request.
    const words = [startTimeOf(events).slice(11, 23) || "-", `#${number}`, ...(pod === undefined ? [] : [pod])];
    return write(context.stdout, `${[...words, outcomeLine(outcomeOf(rowsOf(events)))].join("  ")}\n`);
  };
  const ended = new Set<string | undefined>();
  for await (const { pod, record, error } of merged(proxies)) {
    if (record === undefined) {
      failure = error;
      if (pod !== undefined) await write(context.stderr, `${at(pod)}${describe(error)}\n`);
      continue;
    }
    if (record.kind === "progress") {
      await write(context.stderr, `${at(pod)}${record.text}\n`);
      continue;
    }
    const { event, raw } = record;
    const message = fieldsOf(event.message);
    if (typeof event.request !== "number") {
      if (message.type === "followEnded" && message.reason !== "shutdown") ended.add(pod);
      if (json) await write(context.stdout, `${inPod(raw, event, pod)}\n`);
      else if (message.type !== "followEnded") await write(context.stderr, `${noticeLine(message, pod)}\n`);
      continue;
    }
    const key = `${pod} ${event.request}`;
    let request = open.get(key);
    if (request === undefined) {
      if (requests === count) continue;
      requests++;
      request = { number: requests, pod, events: [] };
      open.set(key, request);
    }
    if (json) await write(context.stdout, `${inPod(raw, { ...event, request: request.number }, pod)}\n`);
    else request.events.push(event);
    if (message.type === "requestFinished" || message.type === "traceEnded") {
      open.delete(key);
      if (!json) await line(request);
      // Each pod would continue up to its own limit.
      if (proxies.length > 1 && requests === count && open.size === 0) break;
    }
    if (context.signal.aborted) return;
  }
  const running = { eventStart: null, eventEnd: null, severity: "info", message: { type: "traceEnded" } };
  if (!json) for (const each of open.values()) await line({ ...each, events: [...each.events, running] });
  if (!json) await write(context.stderr, `${counted(requests, "request")} followed\n`);
  if (failure !== undefined) throw failure;
  const cut = requests < count ? proxies.find(({ pod }) => !ended.has(pod)) : undefined;
  if (cut !== undefined && !context.signal.aborted)
    throw new CliError("failure", `the stream${cut.pod === undefined ? "" : ` of ${cut.pod}`} ended early`, {
      why: "the proxy is shutting down",
    });
}

function inPod(raw: string, event: Fields, pod: string | undefined): string {
  return pod === undefined ? raw : JSON.stringify({ pod, ...event });
}

function noticeLine(message: Fields, pod: string | undefined): string {
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

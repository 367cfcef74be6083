/** Prints followed requests, of one proxy or of all replicas of a Gateway. */
import { counted } from "../../base/counted.ts";
import { type Fields, fieldsOf } from "../../base/fields.ts";
import { startTimeOf } from "../../report/fields.ts";
import { outcomeLine, outcomeOf } from "../../report/outcome.ts";
import { rowOf, rowsOf } from "../../report/rows.ts";
import { duration } from "../../report/text.ts";
import { MESSAGE_TYPES } from "../../trace/events.ts";
import { type Context, write } from "../runner/context.ts";
import { type FollowedOutput, followed } from "./followed.ts";

/** In place of the last event of a request. */
const RUNNING: Fields = { eventStart: null, eventEnd: null, severity: "info", message: { type: "traceEnded" } };

interface Open {
  readonly number: number;
  readonly pod: string | undefined;
  readonly events: Fields[];
  /** A line has said which request it is: its messages have only its number. */
  named: boolean;
}

/**
 * Prints what the proxies stream until that ends, or `count` requests of all proxies together: as text, a line for each request at its
 * end and for each message of a WebSocket or gRPC call when it passes; as JSON, a line for each event, with the name of the pod. Requests are
 * numbered across proxies. Standard error says what is missing.
 * @throws CliError if the stream of the only proxy breaks or ends early
 */
export async function printFollowed(
  streams: AsyncIterable<FollowedOutput>,
  { count, json }: { readonly count: number; readonly json: boolean },
  context: Context,
): Promise<void> {
  const open = new Map<number, Open>();
  const print = ({ number, pod, events }: Open, text: string): Promise<void> => {
    // The time as in the record of the request.
    const words = [startTimeOf(events).slice(11, 23) || "-", `#${number}`, ...(pod === undefined ? [] : [pod])];
    return write(context.stdout, `${[...words, text].join("  ")}\n`);
  };
  const line = (request: Open): Promise<void> => print(request, outcomeLine(outcomeOf(rowsOf(request.events))));
  for await (const item of followed(streams, count)) {
    if (context.signal.aborted) return;
    if (item.kind === "progress") await write(context.stderr, `${item.text}\n`);
    else if (item.kind === "notice") {
      if (json) await write(context.stdout, `${inPod(item.raw, item.event, item.pod)}\n`);
      else if (item.text !== undefined) await write(context.stderr, `${item.text}\n`);
    } else if (item.kind === "lost") {
      const request = open.get(item.number);
      open.delete(item.number);
      if (request !== undefined) await line({ ...request, events: [...request.events, item.event] });
    } else if (item.kind === "event") {
      const { number, pod, event, raw, last } = item;
      if (json) {
        await write(context.stdout, `${inPod(raw, { ...event, request: number }, pod)}\n`);
        continue;
      }
      const request = open.get(number) ?? { number, pod, events: [], named: false };
      open.set(number, request);
      // Shown while its stream is open. They are not kept: there can be any number of them, and they do not decide an outcome.
      if (MESSAGE_TYPES.has(fieldsOf(event.message).type)) {
        if (!request.named) await print(request, `${outcomeOf(rowsOf(request.events)).request} → streaming`);
        request.named = true;
        const { end, summary } = rowOf(event, undefined);
        await print(request, `after ${duration(end ?? 0)}: ${summary}`);
        continue;
      }
      request.events.push(event);
      if (!last) continue;
      open.delete(number);
      await line(request);
    } else {
      for (const each of open.values()) await line({ ...each, events: [...each.events, RUNNING] });
      if (!json) await write(context.stderr, `${counted(item.requests, "request")} followed\n`);
      if (item.failure !== undefined) throw item.failure;
    }
  }
}

function inPod(raw: string, event: Fields, pod: string | undefined): string {
  return pod === undefined ? raw : JSON.stringify({ pod, ...event });
}

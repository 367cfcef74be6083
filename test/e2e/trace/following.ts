import type { FollowRequest } from "../../../src/admin/client/client.ts";
import type { TraceEvent, TraceMessage } from "../../../src/trace/events.ts";
import type { RunningGateway } from "../../helpers/gateway.ts";
import { admin } from "./support.ts";

/** An event of a followed request, or a notice about the stream. */
export type Followed = Omit<TraceEvent, "message"> & {
  readonly request: number | null;
  readonly message: TraceMessage | Notice;
};
type Notice =
  | { readonly type: "dropped"; readonly count: number; readonly requests: number; readonly ended: readonly number[] }
  | { readonly type: "workerDied"; readonly worker: string; readonly unfinished: number; readonly held: boolean }
  | { readonly type: "followEnded"; readonly reason: string; readonly requests: number; readonly unfinished: number };

/** The events of each request by its number, in the order of the stream. */
export function byRequest(events: readonly Followed[]): ReadonlyMap<number, TraceEvent[]> {
  const requests = new Map<number, TraceEvent[]>();
  for (const { request, ...event } of events) {
    if (request === null) continue;
    requests.set(request, [...(requests.get(request) ?? []), event as TraceEvent]);
  }
  return requests;
}

export const noticesOf = (events: readonly Followed[]): Followed["message"][] =>
  events.filter(({ request }) => request === null).map(({ message }) => message);

/** Follows, does `act` once the gateway has begun, and returns the events of the whole stream. */
export async function followed(
  gateway: RunningGateway,
  request: FollowRequest,
  act: () => unknown,
): Promise<Followed[]> {
  const stream = admin(gateway).follow({ ...request, signal: AbortSignal.timeout(60_000) });
  await stream.opened;
  const acted = Promise.resolve(act());
  const events: Followed[] = [];
  for await (const { raw } of stream) events.push(JSON.parse(raw) as Followed);
  await acted;
  return events;
}

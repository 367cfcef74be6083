import { setTimeout as delay } from "node:timers/promises";
import { AdminClientError, type FollowRequest, type TraceStream } from "../../admin/client/client.ts";
import { fieldsOf } from "../../base/fields.ts";
import { CliError, describe, usage } from "../runner/errors.ts";
import type { FollowedItem } from "../trace/followed.ts";
import { toRecord } from "../trace/source.ts";
import { adminResult, type ProxyAdmin } from "./admin.ts";

/** Milliseconds in front of each attempt to connect again; the gateway waits for 10 s. */
const PAUSES = [0, 250, 500, 1000, 2000, 4000] as const;

/**
 * Resolves with the events of the requests that the proxy follows, once it has begun. When the connection breaks off, it is made again, and the
 * stream goes on behind the last event; it throws a `CliError` if it cannot.
 */
export async function openFollow(proxy: ProxyAdmin, request: FollowRequest): Promise<AsyncGenerator<FollowedItem>> {
  return resumed(proxy, request, await opened(proxy, request));
}

async function opened(proxy: ProxyAdmin, request: FollowRequest): Promise<TraceStream> {
  const stream = proxy.client.follow(request);
  await adminResult(proxy, stream.opened, (status, body) =>
    status === 400 ? usage(body.trimEnd()) : new CliError("failure", `follow stream returned ${status}: ${body}`),
  );
  return stream;
}

async function* resumed(proxy: ProxyAdmin, request: FollowRequest, first: TraceStream): AsyncGenerator<FollowedItem> {
  for (let stream = first; ; ) {
    let why = "the connection was closed";
    try {
      for await (const { raw } of stream) {
        const record = toRecord(raw);
        yield record;
        if (fieldsOf(record.event.message).type === "followEnded") return;
      }
    } catch (error) {
      if (!(error instanceof AdminClientError) || error.kind === "aborted") throw CliError.from(error);
      why = describe(error);
    }
    yield { kind: "progress", text: `the stream broke off: ${why}; connecting again` };
    stream = await again(proxy, request, stream.lastEventId);
    yield { kind: "progress", text: "connected again; the stream goes on behind the last event" };
  }
}

async function again(proxy: ProxyAdmin, request: FollowRequest, lastEventId: string | undefined): Promise<TraceStream> {
  let last: unknown = "nothing had arrived yet";
  for (const pause of lastEventId === undefined ? [] : PAUSES) {
    await delay(pause, undefined, { signal: request.signal }).catch(() => undefined);
    const stream = proxy.client.follow({ ...request, lastEventId });
    try {
      await stream.opened;
      return stream;
    } catch (error) {
      last = error;
      if (!(error instanceof AdminClientError) || ["status", "aborted"].includes(error.kind)) break;
    }
  }
  throw new CliError("failure", "the stream broke off and could not be resumed", { why: describe(last), cause: last });
}

/**
 * `requestMirror`: sends copies of requests to other backends, to try a new version with real traffic
 * (docs/policies/request-mirror.md). In: a request as it is where the policy runs. Out: nothing for the client: responses to
 * copies are discarded, failures are logged. A copy has its own call, outlives the exchange, and is made once, however often the
 * request itself is retried.
 */
import { isIP } from "node:net";
import { asError } from "../../base/errors.ts";
import { isGrpc } from "../../http/grpc-reply.ts";
import { copyField, madeOf } from "../../http/message/message.ts";
import { type Callout, reasonOf } from "../../upstream/callouts/callout.ts";
import { type CalloutRequest, NEEDS_BODY } from "../../upstream/callouts/http-call.ts";
import { redactPolicies } from "../calls/redact.ts";
import { applied, Decisions } from "../contract/decisions.ts";
import type { PolicyDeps } from "../contract/deps.ts";
import { FRAMING } from "../contract/header-edits.ts";
import type { CalloutContext, PolicyContext, PolicyHooks } from "../contract/types.ts";
import { definePolicy } from "../define/policy.ts";
import { calloutContextOf, observerOf } from "../shared/call-for.ts";
import type { Mirror, RequestMirror } from "./schema.ts";

const KIND = "requestMirror";
const SCOPE = "mirror";
/** Milliseconds for a copy with its response; then its connection is closed. `http.requestTimeout` of its backend wins. */
const TIMEOUT_MS = 10_000;
/** Copies in flight per target: an unresponsive target must not exhaust memory. Further copies are dropped. */
const MAX_PENDING = 256;
/** MiB of bodies in copies of a worker: they outlive their requests, so `maxBufferedBytes` does not limit them. */
const MAX_PENDING_MIB = 64;

let pendingBytes = 0;

/** The head of a copy, taken when the policy runs: later policies change the request. */
type Copied = Omit<CalloutRequest, "body" | "timeoutMs">;

interface MirrorTarget {
  readonly mirror: Mirror;
  readonly callout: Callout<CalloutContext>;
  /** The target has a host name, which becomes the authority; otherwise copies keep the request's. */
  readonly named: boolean;
  pending: number;
}

const decisions = new Decisions<{ readonly code: "copied"; readonly copies: number; readonly targets: number }>(
  "request_mirror",
  {
    copied: ({ copies, targets }) =>
      applied(`copies to ${copies} of ${targets} targets, chosen by percentage`, { copies }),
  },
);

export const requestMirror = definePolicy({
  decisions,
  kind: KIND,
  phases: ["route", "backend"],
  prepare: (config: RequestMirror) => (deps) => mirrorHooks(config, deps),
  redact: (config, hidden) => config.map((mirror) => ({ ...mirror, ...redactPolicies(mirror, hidden) })),
});

/**
 * The hooks of a policy. Bodies up to `maxBufferSize` are copied; requests with longer ones are not mirrored. `random` is uniform
 * in [0, 1) and decides per target.
 */
export function mirrorHooks(
  config: RequestMirror,
  deps: Pick<PolicyDeps, "callouts" | "log">,
  random: () => number = Math.random,
): PolicyHooks {
  const places = config.map(
    (mirror): MirrorTarget => ({
      mirror,
      callout: deps.callouts(mirror.target, mirror.policies),
      named: mirror.target.type === "static" && isIP(mirror.target.host) === 0,
      pending: 0,
    }),
  );
  const copied = new WeakSet<PolicyContext>();
  const failed = (error: unknown): void =>
    deps.log?.warn("error sending mirror request", { error: reasonOf(asError(error)) });
  return {
    onRequest(context) {
      // Tunnelled bytes are not a message body. Backend policies run again for each retry, but a copy is sent once.
      if (context.request.method === "CONNECT" || copied.has(context)) return undefined;
      copied.add(context);
      const chosen = places.filter(({ mirror }) => random() < mirror.percentage);
      context.trace?.report(decisions, { code: "copied", copies: chosen.length, targets: places.length });
      if (chosen.length === 0) return undefined;
      sendAll(chosen, context, failed).catch(failed);
      return undefined;
    },
  };
}

const NOTHING = new Uint8Array(0);

/** Waits for the body, then sends one copy to each target. Rejects for a body that is too long or finds no room. */
async function sendAll(
  to: readonly MirrorTarget[],
  context: PolicyContext,
  failed: (error: unknown) => void,
): Promise<void> {
  const request = copyOf(context);
  const { authority } = context.request;
  const { requestBody, maxBufferSize } = context;
  const body = requestBody.empty ? NOTHING : await requestBody.copy(maxBufferSize);
  if (body === undefined)
    throw new Error(`the body is longer than ${maxBufferSize} bytes (maxBufferSize), or maxBufferedBytes is used up`);
  for (const place of to) send(place, { ...request, body, ...(!place.named && { authority }) }, context).catch(failed);
}

/** One copy. Rejects if the call fails, the target has too many in flight, or those of the worker are too large. */
async function send(
  place: MirrorTarget,
  request: Copied & Pick<CalloutRequest, "body">,
  context: PolicyContext,
): Promise<void> {
  if (place.pending >= MAX_PENDING) throw new Error(`${MAX_PENDING} copies are still waiting for a response`);
  const { length } = request.body;
  // A single copy may be as long as `maxBufferSize` allows.
  if (pendingBytes > 0 && pendingBytes + length > MAX_PENDING_MIB * 1024 * 1024)
    throw new Error(`copies of ${MAX_PENDING_MIB} MiB are still waiting for a response`);
  place.pending++;
  pendingBytes += length;
  try {
    const timeoutMs = place.mirror.policies?.http?.requestTimeout ?? TIMEOUT_MS;
    // Not cancelled with the exchange: a fast response to the client must not cut copies short.
    await place.callout.http(
      { ...request, timeoutMs },
      {
        onCancel: () => {},
        observer: observerOf(context, SCOPE),
        calloutContext: calloutContextOf(context, SCOPE),
        loop: context.loop,
      },
    );
  } finally {
    place.pending--;
    pendingBytes -= length;
  }
}

/** The head of a copy; its response body is discarded. */
function copyOf({ request }: PolicyContext): Copied {
  const { headers: fields } = request;
  const headers = madeOf(fields, []);
  for (let i = 0; i < fields.length; i += 2) {
    const name = fields[i] as string;
    // The copy has its own framing, and sends its body without waiting for 100 (RFC 9110, section 10.1.1).
    if (!FRAMING.has(name) && name !== "expect") copyField(headers, fields, i);
  }
  const path = request.path + request.search;
  const { method } = request;
  return { method, path, headers, maxBytes: 0, dropBody: true, headDecides: NEEDS_BODY, grpc: isGrpc(headers) };
}

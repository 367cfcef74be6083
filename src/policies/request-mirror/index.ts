import { isIP } from "node:net";
import { asError } from "../../base/errors.ts";
import type { HeaderList } from "../../http/message.ts";
import { copyField } from "../../http/message.ts";
import type { CallRequest } from "../../upstream/call.ts";
import { type Callout, reasonOf } from "../../upstream/callout.ts";
import { calloutContextOf, observerOf } from "../calls/call-for.ts";
import { redactPolicies } from "../calls/redact.ts";
import type { PolicyDeps } from "../deps.ts";
import { definePolicy } from "../policy.ts";
import { FRAMING } from "../shared/header-edits.ts";
import type { CalloutContext, PolicyContext, PolicyHooks } from "../types.ts";
import type { Mirror, RequestMirror } from "./schema.ts";

const KIND = "requestMirror";
const SCOPE = "mirror";
/** How long a copy may take, its answer included; then its connection is closed. `http.requestTimeout` of its backend wins. */
const TIMEOUT_MS = 10_000;
/** Copies to one place that may be under way: a place that does not answer must not fill the memory. */
const MAX_PENDING = 256;

/** Without a body, as it was when the policy ran. */
type Copied = Omit<CallRequest, "body" | "timeoutMs">;

interface MirrorTarget {
  readonly mirror: Mirror;
  readonly callout: Callout<CalloutContext>;
  /** The authority to ask for is the target's own name. */
  readonly named: boolean;
  pending: number;
}

export const requestMirror = definePolicy({
  kind: KIND,
  phases: ["route", "backend"],
  traceStage: "request mirror",
  prepare: (config: RequestMirror) => (deps) => mirrorHooks(config, deps),
  redact: (config, hidden) => config.map((mirror) => ({ ...mirror, ...redactPolicies(mirror, hidden) })),
});

/**
 * Sends copies of requests elsewhere (reference 3.19): as they are where the policy runs, each once however often the request
 * itself is tried, and with their bodies when these are not longer than `maxBufferSize`. `random` is uniform in [0, 1).
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
      // A tunnel has nothing to copy.
      if (context.request.method === "CONNECT" || copied.has(context)) return undefined;
      copied.add(context);
      const chosen = places.filter(({ mirror }) => random() < mirror.percentage);
      context.trace?.applied("request_mirror", { copies: chosen.length });
      if (chosen.length === 0) return undefined;
      sendAll(chosen, context, failed).catch(failed);
      return undefined;
    },
  };
}

const NOTHING = new Uint8Array(0);

async function sendAll(
  to: readonly MirrorTarget[],
  context: PolicyContext,
  failed: (error: unknown) => void,
): Promise<void> {
  const request = copyOf(context);
  const { authority } = context.request;
  const { requestBody, maxBufferSize } = context;
  const body = requestBody.empty ? NOTHING : await requestBody.copy(maxBufferSize);
  if (body === undefined) throw new Error(`the body is longer than ${maxBufferSize} bytes`);
  for (const place of to) send(place, { ...request, body, ...(!place.named && { authority }) }, context).catch(failed);
}

async function send(
  place: MirrorTarget,
  request: Copied & Pick<CallRequest, "body">,
  context: PolicyContext,
): Promise<void> {
  if (place.pending >= MAX_PENDING) throw new Error(`${MAX_PENDING} copies have no answer yet`);
  place.pending++;
  try {
    const timeoutMs = place.mirror.policies?.http?.requestTimeout ?? TIMEOUT_MS;
    // A copy outlives the exchange: nothing cancels it.
    await place.callout.http(
      { ...request, timeoutMs },
      { onCancel: () => {}, observer: observerOf(context, SCOPE), calloutContext: calloutContextOf(context, SCOPE) },
    );
  } finally {
    place.pending--;
  }
}

function copyOf({ request }: PolicyContext): Copied {
  const { headers: fields } = request;
  const headers: HeaderList = [];
  for (let i = 0; i < fields.length; i += 2) {
    const name = fields[i] as string;
    // Framing is that of the copy, which waits for nobody's permission to send its body.
    if (!FRAMING.has(name) && name !== "expect") copyField(headers, fields, i);
  }
  const path = request.path + request.search;
  return { method: request.method, path, headers, maxBytes: 0, dropBody: true };
}

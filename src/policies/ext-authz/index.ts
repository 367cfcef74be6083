/**
 * `extAuthz` (docs/policies/ext-authz.md): delegates authorization to a service, by Envoy's ext_authz protocol (`grpc.ts`) or
 * plain HTTP (`http.ts`). In: the service as a target, what of the request it gets, and what happens when it fails. Out: the
 * request with headers and metadata of the decision, the response of the service, or TG_EXT_AUTHZ. Runs in all three phases.
 * `network.ts` does the same for connections before their first request.
 */
import { type ErrorAnswer, GatewayError } from "../../base/errors.ts";
import type { CelEnvironment } from "../../cel/index.ts";
import type { Callout } from "../../upstream/callouts/callout.ts";
import { redactCalling } from "../calls/redact.ts";
import { applied, Decisions, rejected } from "../contract/decisions.ts";
import type { PolicyDeps } from "../contract/deps.ts";
import { applyHeaderEdits, redactValues } from "../contract/header-edits.ts";
import type { BodyStart, CalloutContext, PolicyContext, PolicyHooks } from "../contract/types.ts";
import { defineConditionalPolicy } from "../define/policy.ts";
import { type InvalidTarget, invalidTarget } from "../envoy/convert.ts";
import { continueOrReject, type ServiceFailed, serviceFailed } from "../shared/call-for.ts";
import { afterRequestBody } from "../shared/expressions.ts";
import { type AuthzClient, applyDecision, denialStatus, isExcused } from "./decision.ts";
import { grpcClient } from "./grpc.ts";
import { httpClient } from "./http.ts";
import type { NetworkExtAuthz } from "./network-schema.ts";
import type { ExtAuthz } from "./schema.ts";

/** Challenge of `denyWithStatus: 401` and `407`. */
const BEARER = 'Bearer realm="Restricted"';

type ExtAuthzDecision =
  | { readonly code: "allowed"; readonly cached: boolean }
  | { readonly code: "denied"; readonly cached: boolean; readonly status: number }
  | { readonly code: "bodyTooLong"; readonly limit: number }
  | ServiceFailed
  | InvalidTarget;

const decisions = new Decisions<ExtAuthzDecision>("ext_auth", {
  allowed: ({ cached }) =>
    applied(`${whose(cached)} allows the request`, { result: "allow", ...(cached && { cached }) }),
  denied: ({ cached, status }) =>
    rejected(`${whose(cached)} denies the request with status ${status}`, {
      result: "deny",
      ...(cached && { cached }),
    }),
  failed: serviceFailed("failureMode allows the request"),
  bodyTooLong: ({ limit }) => {
    const error = `the body is longer than ${limit} bytes`;
    return rejected(`${error} (includeRequestBody.maxRequestBytes)`, { result: "deny", error });
  },
  invalidTarget,
});

function whose(cached: boolean): string {
  return cached ? "an earlier response of the service, which is cached," : "the service";
}

export const extAuthz = defineConditionalPolicy({
  decisions,
  kind: "extAuthz",
  phases: ["gateway", "route", "backend"],
  calls: "warn",
  prepare,
  redact: redactAuthz,
});

/** Compiles client and cache, without a data plane. Throws CelError or PolicyError for expressions and fields that are invalid. */
function prepare(config: ExtAuthz, cel: CelEnvironment): (deps: PolicyDeps) => PolicyHooks {
  const { protocol } = config;
  const client = "grpc" in protocol ? grpcClient(config, protocol.grpc, cel) : httpClient(config, protocol.http, cel);
  return ({ callouts, ownFields }) => {
    for (const { name } of client.clears) ownFields.add(name);
    return hooksOf({ config, client, callout: callouts(config.target, config.policies) });
  };
}

/** The policy bound to a data plane. */
interface Authorization {
  readonly config: ExtAuthz;
  readonly client: AuthzClient;
  readonly callout: Callout<CalloutContext>;
}

/**
 * Failures of the service follow `failureMode`. Failures that a client can cause, such as an expression without a value, never allow.
 * Fields that only the service may set are cleared whenever the request passes.
 */
function hooksOf(authz: Authorization): PolicyHooks {
  const { client } = authz;
  const { failureMode } = authz.config;
  return {
    onRequest: afterRequestBody(client.expressions, async (context) => {
      const checked = await decide(authz, context).catch((error: unknown) => {
        if (error instanceof GatewayError && error.code === "TG_EXT_AUTHZ") throw error;
        const answer = typeof failureMode === "string" ? {} : denialWith(failureMode.denyWithStatus);
        const open = failureMode === "allow" && isExcused(error);
        continueOrReject(context, decisions, error, open, "TG_EXT_AUTHZ", answer);
        return undefined;
      });
      if (checked === undefined || checked.decision.allowed) applyHeaderEdits(client.clears, context.request.headers);
      if (checked === undefined) return undefined;
      const { decision, cached } = checked;
      applyDecision(context, decision, decisions);
      const status = denialStatus(decision);
      if (decision.allowed || status === undefined) return undefined;
      throw decisions.reject(context.trace, { code: "denied", cached, status }, "TG_EXT_AUTHZ", decision.reply);
    }),
  };
}

/**
 * The response for `denyWithStatus`. 401 and 407 require a challenge (RFC 9110, sections 11.6.1 and 11.7.1); the service, which
 * knows the scheme, did not respond, so it is Bearer.
 */
function denialWith(status: number): Partial<ErrorAnswer> {
  if (status === 401) return { status, headers: ["www-authenticate", BEARER] };
  return status === 407 ? { status, headers: ["proxy-authenticate", BEARER] } : { status };
}

/** The cached decision, or a new one from the service. */
async function decide(
  { config: { includeRequestBody }, client, callout }: Authorization,
  context: PolicyContext,
): ReturnType<AuthzClient["check"]> {
  const body = includeRequestBody === undefined ? undefined : await readBody(includeRequestBody, context);
  const checked = await client.check(callout, context, body);
  if (checked.decision.allowed) context.trace?.report(decisions, { code: "allowed", cached: checked.cached });
  return checked;
}

/** The start of the body for the service; 413 if it is longer and may not be truncated. */
async function readBody(
  { maxRequestBytes, allowPartialMessage }: NonNullable<ExtAuthz["includeRequestBody"]>,
  { requestBody, trace }: PolicyContext,
): Promise<BodyStart> {
  const body = await requestBody.peek(maxRequestBytes);
  if (body.complete || allowPartialMessage) return body;
  throw decisions.reject(trace, { code: "bodyTooLong", limit: maxRequestBytes }, "TG_EXT_AUTHZ", { status: 413 });
}

/** For requests or connections: without the expressions of secret headers, which may contain the secret as a literal. */
export function redactAuthz(config: ExtAuthz | NetworkExtAuthz, hidden: ReadonlySet<string>): unknown {
  const redacted = redactCalling(config, hidden);
  if ("grpc" in config.protocol) return redacted;
  const { http } = config.protocol;
  return {
    ...redacted,
    protocol: { http: { ...http, addRequestHeaders: redactValues(http.addRequestHeaders, hidden) } },
  };
}

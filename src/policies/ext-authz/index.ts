import { ERRORS, type ErrorAnswer, GatewayError } from "../../base/errors.ts";
import type { Activation } from "../../cel/index.ts";
import type { ExtAuthz } from "../../ir/policies.ts";
import { reasonOf } from "../../upstream/callout.ts";
import type { PolicyDeps } from "../deps.ts";
import { afterRequestBody } from "../shared/bodies.ts";
import { applyHeaderEdits } from "../shared/header-edits.ts";
import { refuse } from "../shared/refusal.ts";
import { withVariables } from "../shared/with-variables.ts";
import type { BodyStart, CompiledPolicy, PolicyContext } from "../types.ts";
import { VerdictCache } from "./cache.ts";
import { askGrpc } from "./grpc.ts";
import { askHttp } from "./http.ts";
import { type Asker, applyVerdict, QuestionError, type Verdict } from "./verdict.ts";

const KIND = "extAuthz";
/** Kind in traces. */
const TRACED = "ext_auth";
const BEARER = 'Bearer realm="Restricted"';

/**
 * Asks a service whether the request may go on (reference 3.8). The service may change the request's headers, add some to the
 * response, and answer in the place of the backend. Throws CelError for expressions that cannot be used.
 */
export function create(config: ExtAuthz, { callouts, ownFields }: PolicyDeps): CompiledPolicy {
  const callout = callouts(config.target, config.policies);
  const { protocol, failureMode } = config;
  const asker = "grpc" in protocol ? askGrpc(config, protocol.grpc, callout) : askHttp(config, protocol.http, callout);
  for (const { name } of asker.clears) ownFields.add(name);
  const cache = config.cache === undefined ? undefined : new VerdictCache<Verdict>(config.cache, "request");
  return {
    kind: KIND,
    onRequest: afterRequestBody([...asker.expressions, ...(cache?.expressions ?? [])], async (context) => {
      const verdict = await decide(config, asker, cache, context).catch((error: unknown) => {
        if (error instanceof GatewayError && error.code === "TG_EXT_AUTHZ") throw error;
        const outcome = { result: "failed", error: reasonOf(error) };
        if (failureMode === "allow" && !(error instanceof QuestionError)) {
          context.trace?.failed(TRACED, outcome);
          return undefined;
        }
        context.trace?.decided(TRACED, false, outcome);
        const answer = typeof failureMode === "string" ? {} : refusalWith(failureMode.denyWithStatus);
        throw new GatewayError("TG_EXT_AUTHZ", undefined, new Error(reasonOf(error)), answer);
      });
      if (verdict === undefined || verdict.allowed) applyHeaderEdits(asker.clears, context.request.headers);
      if (verdict === undefined) return undefined;
      applyVerdict(context, verdict);
      if (verdict.allowed) return undefined;
      if (verdict.reply === undefined) throw new GatewayError("TG_EXT_AUTHZ");
      return refuse(context.request, verdict.reply, "TG_EXT_AUTHZ");
    }),
  };
}

/** 401 and 407 need a challenge (RFC 9110 11.6.1, 11.7.1); the service that knows the scheme did not answer, so it is the usual one. */
function refusalWith(status: number): Partial<ErrorAnswer> {
  if (status === 401) return { status, headers: ["www-authenticate", BEARER] };
  return status === 407 ? { status, headers: ["proxy-authenticate", BEARER] } : { status };
}

async function decide(
  { includeRequestBody }: ExtAuthz,
  asker: Asker,
  cache: VerdictCache<Verdict> | undefined,
  context: PolicyContext,
): Promise<Verdict> {
  const { trace } = context;
  const body = includeRequestBody === undefined ? undefined : await readBody(includeRequestBody, context);
  const key = cache?.keyOf(context.variables);
  const known = key === undefined ? undefined : cache?.get(key);
  const verdict = known ?? (await asker.ask(context, body));
  if (known === undefined && key !== undefined)
    cache?.put(key, verdict, refusalStatus(verdict), withVariables(context.variables, told(context, verdict)));
  const { allowed } = verdict;
  trace?.decided(TRACED, allowed, {
    result: allowed ? "allow" : "deny",
    ...(known !== undefined && { cached: true }),
  });
  return verdict;
}

async function readBody(
  { maxRequestBytes, allowPartialMessage }: NonNullable<ExtAuthz["includeRequestBody"]>,
  { requestBody, trace }: PolicyContext,
): Promise<BodyStart> {
  const body = await requestBody.peek(maxRequestBytes);
  if (body.complete || allowPartialMessage) return body;
  trace?.decided(TRACED, false, { result: "deny", error: `the body is longer than ${maxRequestBytes} bytes` });
  throw new GatewayError("TG_EXT_AUTHZ", undefined, undefined, { status: 413 });
}

/** What expressions read of the verdict once it is in effect. */
function told({ findings }: PolicyContext, { metadata }: Verdict): Partial<Activation> {
  return metadata === undefined ? {} : { extauthz: { ...(findings.extauthz as object | undefined), ...metadata } };
}

/** undefined: it allows. */
function refusalStatus(verdict: Verdict): number | undefined {
  return verdict.allowed ? undefined : (verdict.reply?.status ?? ERRORS.TG_EXT_AUTHZ.status);
}

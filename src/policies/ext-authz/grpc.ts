import type { Activation } from "../../cel/index.ts";
import { getHeader } from "../../http/message.ts";
import type { Callout } from "../../upstream/callout.ts";
import { callFor } from "../calls/call-for.ts";
import { CHECK, type CheckAnswer, CheckRequest, CheckResponse } from "../envoy/auth.ts";
import { headerEdits, headerRemovals, joinedHeaders, pseudoHeaders, replyHeaders, textOf } from "../envoy/headers.ts";
import type { ExtAuthz, ExtAuthzGrpc } from "../policy-set.ts";
import { compileAll, evaluateAll } from "../shared/named-expressions.ts";
import type { BodyStart, CalloutContext, PolicyContext } from "../types.ts";
import type { AuthzClient, AuthzDecision } from "./decision.ts";

/** The name under which filters look for their metadata. */
export const NAMESPACE = "envoy.filters.http.ext_authz";

/** Asks by `Authorization/Check`. */
export function grpcClient(config: ExtAuthz, grpc: ExtAuthzGrpc, callout: Callout<CalloutContext>): AuthzClient {
  const metadata = compileAll(grpc.metadata ?? {}, "request");
  const included = new Set(config.includeRequestHeaders);
  const wants = (name: string): boolean => included.size === 0 || included.has(name);
  const check: AuthzClient["check"] = async (context, body) => {
    const question = CheckRequest.encode({
      attributes: {
        ...peers(context.variables),
        request: { time: now(), http: describe(context, body, wants, config.includeRequestBody?.packAsBytes === true) },
        context_extensions: grpc.context ?? {},
        metadata_context: { filter_metadata: { [NAMESPACE]: evaluateAll(metadata, context.variables) } },
      },
    });
    const answer = await callout.unary(CHECK, question, config.timeout, callFor(context, "ext_authz"));
    return decisionOf(CheckResponse.decode(answer));
  };
  // Which fields the service sets is known only from what it says.
  return { expressions: metadata.map(([, expression]) => expression), clears: [], check };
}

/** Both ends of the connection, as `attributes` have them. */
export function peers({ source, destination }: Activation) {
  const address = (from: { readonly address: string; readonly port: number }) => ({
    address: { socket_address: { address: from.address, port_value: from.port } },
  });
  return {
    ...(source !== undefined && {
      source: { ...address(source), ...(source.spiffeId !== undefined && { principal: source.spiffeId }) },
    }),
    ...(destination !== undefined && { destination: address(destination) }),
  };
}

function describe(
  context: PolicyContext,
  body: BodyStart | undefined,
  wants: (name: string) => boolean,
  packAsBytes: boolean,
) {
  const { request } = context;
  const headers = { ...joinedHeaders(request.headers, wants), ...pseudoHeaders(context) };
  const length = getHeader(request.headers, "content-length");
  return {
    id: getHeader(request.headers, "traceparent") ?? "",
    method: request.method,
    headers:
      body === undefined ? headers : { ...headers, "x-envoy-auth-partial-body": body.complete ? "false" : "true" },
    path: textOf(request.path + request.search),
    host: textOf(request.authority),
    scheme: request.scheme,
    size: length === undefined ? -1 : Number(length),
    protocol: request.version,
    ...(body !== undefined && (packAsBytes ? { raw_body: body.bytes } : { body: Buffer.from(body.bytes).toString() })),
  };
}

function now(): { seconds: number; nanos: number } {
  const ms = Date.now();
  return { seconds: Math.floor(ms / 1000), nanos: (ms % 1000) * 1_000_000 };
}

export function decisionOf({
  status,
  ok_response: ok,
  denied_response: denied,
  dynamic_metadata,
}: CheckAnswer): AuthzDecision {
  const metadata = dynamic_metadata;
  if ((status?.code ?? 0) === 0 && denied === undefined)
    return {
      allowed: true,
      // Removed first: what the service sets is not to be lost.
      requestEdits: [...headerRemovals(ok?.headers_to_remove), ...headerEdits(ok?.headers, "set")],
      responseEdits: headerEdits(ok?.response_headers_to_add, "add"),
      metadata,
    };
  if (denied === undefined) return { allowed: false, reply: undefined, metadata };
  const code = denied.status?.code ?? 0;
  return {
    allowed: false,
    reply: {
      status: code >= 200 && code <= 599 ? code : 403,
      headers: replyHeaders(headerEdits(denied.headers, "add")),
      body: denied.body ?? "",
      reason: "ExtAuth",
    },
    metadata,
  };
}

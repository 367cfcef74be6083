import type { Activation, CelEnvironment } from "../../cel/index.ts";
import type { CheckResponse } from "../../gen/envoy/service/auth/v3/external_auth_pb.ts";
import { getHeader } from "../../http/message.ts";
import { callFor } from "../calls/call-for.ts";
import {
  headerEdits,
  headerRemovals,
  joinedHeaders,
  pseudoHeaders,
  replyHeaders,
  structOf,
  textOf,
} from "../envoy/convert.ts";
import { envoyMethods } from "../envoy/load-methods.ts";
import { compileAll, evaluateAll } from "../shared/expressions.ts";
import type { BodyStart, PolicyContext } from "../types.ts";
import type { AuthzClient, AuthzDecision } from "./decision.ts";
import type { ExtAuthz, ExtAuthzGrpc } from "./schema.ts";

/** Namespace in `filter_metadata`: the name of Envoy's filter, which existing services read. */
export const NAMESPACE = "envoy.filters.http.ext_authz";

/**
 * A client for services that implement Envoy's `envoy.service.auth.v3.Authorization/Check`. Messages are loaded with the first call:
 * workers without such a policy do not pay for them. Throws CelError for metadata expressions that do not compile.
 */
export function grpcClient(config: ExtAuthz, grpc: ExtAuthzGrpc, cel: CelEnvironment): AuthzClient {
  const metadata = compileAll(grpc.metadata ?? {}, "request", cel);
  const included = new Set(config.includeRequestHeaders);
  const wants = (name: string): boolean => included.size === 0 || included.has(name);
  const check: AuthzClient["check"] = async (callout, context, body) => {
    const { check } = await envoyMethods();
    const message = check.encode({
      attributes: {
        ...peers(context.variables),
        request: { time: now(), http: describe(context, body, wants, config.includeRequestBody?.packAsBytes === true) },
        contextExtensions: grpc.context ?? {},
        metadataContext: { filterMetadata: { [NAMESPACE]: structOf(evaluateAll(metadata, context.variables)) } },
      },
    });
    const answer = await callout.unary(check.path, message, config.timeout, callFor(context, "ext_authz"));
    return decisionOf(check.decode(answer));
  };
  // The response names the fields it sets, and setting replaces what the client sent; there is nothing to clear beforehand.
  return { expressions: metadata.map(([, expression]) => expression), clears: [], check };
}

/** `source` and `destination` of the attributes: the addresses of the connection and the client's SPIFFE id. */
export function peers({ source, destination }: Activation) {
  const address = (from: { readonly address: string; readonly port: number }) => ({
    address: {
      address: {
        case: "socketAddress" as const,
        value: { address: from.address, portSpecifier: { case: "portValue" as const, value: from.port } },
      },
    },
  });
  return {
    ...(source !== undefined && {
      source: { ...address(source), ...(source.spiffeId !== undefined && { principal: source.spiffeId }) },
    }),
    ...(destination !== undefined && { destination: address(destination) }),
  };
}

/** The request for the service, as Envoy sends it: repeated headers joined, text as UTF-8, `size` -1 if unknown. */
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
    size: BigInt(length ?? -1),
    protocol: request.version,
    ...(body !== undefined && (packAsBytes ? { rawBody: body.bytes } : { body: Buffer.from(body.bytes).toString() })),
  };
}

/** The present as a protobuf Timestamp. */
function now(): { seconds: bigint; nanos: number } {
  const ms = Date.now();
  return { seconds: BigInt(Math.floor(ms / 1000)), nanos: (ms % 1000) * 1_000_000 };
}

/**
 * Allowed means status OK (0) and no `denied_response`, as in Envoy. A denial without a response becomes the gateway's own 403, and a
 * status outside 200 to 599, which HTTP could not send, becomes 403 too.
 */
export function decisionOf({ status, httpResponse, dynamicMetadata: metadata }: CheckResponse): AuthzDecision {
  const ok = httpResponse.case === "okResponse" ? httpResponse.value : undefined;
  const denied = httpResponse.case === "deniedResponse" ? httpResponse.value : undefined;
  if ((status?.code ?? 0) === 0 && denied === undefined)
    return {
      allowed: true,
      // Removals first, or they would take what the service sets under the same name.
      requestEdits: [...headerRemovals(ok?.headersToRemove), ...headerEdits(ok?.headers, "set")],
      responseEdits: headerEdits(ok?.responseHeadersToAdd, "add"),
      metadata,
    };
  if (denied === undefined) return { allowed: false, reply: undefined, metadata };
  const code = denied.status?.code ?? 0;
  return {
    allowed: false,
    reply: {
      status: code >= 200 && code <= 599 ? code : 403,
      headers: replyHeaders(headerEdits(denied.headers, "add")),
      body: denied.body,
      reason: "ExtAuth",
    },
    metadata,
  };
}

import type { MessageInitShape } from "@bufbuild/protobuf";
import { messageOf } from "../../base/errors.ts";
import type { Activation, CelEnvironment, SourceParts } from "../../cel/index.ts";
import type { AttributeContextSchema as Attributes } from "../../gen/envoy/service/auth/v3/attribute_context_pb.ts";
import type { CheckResponse } from "../../gen/envoy/service/auth/v3/external_auth_pb.ts";
import { getHeader } from "../../http/message/message.ts";
import type { Callout } from "../../upstream/callouts/callout.ts";
import { UnreadableAnswer } from "../../upstream/callouts/http-call.ts";
import { NO_PSEUDO } from "../contract/header-edits.ts";
import type { BodyStart, CalloutContext, PolicyContext } from "../contract/types.ts";
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
import { callFor } from "../shared/call-for.ts";
import { compileAll, evaluateAll } from "../shared/expressions.ts";
import { REQUEST_PSEUDO } from "../transformations/messages.ts";
import { AnswerCache, type Lookup } from "./cache.ts";
import { type AuthzClient, type AuthzDecision, decidedVariables, denialStatus, setsCookie } from "./decision.ts";
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
  const cache = config.cache === undefined ? undefined : new AnswerCache<Uint8Array>(config.cache, "request", cel);
  const check: AuthzClient["check"] = async (callout, context, body) => {
    const attributes = {
      ...peers(context.variables),
      request: { time: now(), http: describe(context, body, wants, config.includeRequestBody?.packAsBytes === true) },
      contextExtensions: grpc.context ?? {},
      metadataContext: { filterMetadata: { [NAMESPACE]: structOf(evaluateAll(metadata, context.variables)) } },
    };
    const lookup = cache?.lookup(context.variables);
    const call = callFor(context, "ext_authz");
    const { answer, response } = await askGrpc(callout, attributes, config.timeout, call, lookup);
    const decision = decisionOf(response);
    if (!setsCookie(decision))
      lookup?.keep(answer, answer.length, denialStatus(decision), decidedVariables(context, decision));
    return { decision, cached: lookup?.found === true };
  };
  // The response names the fields it sets, and setting replaces what the client sent; there is nothing to clear beforehand.
  const expressions = [...metadata.map(([, expression]) => expression), ...(cache?.expressions ?? [])];
  return { expressions, clears: [], check };
}

/** The contents of a `Check` request; without `request`, it is about a connection. */
type Question = ReturnType<typeof peers> & {
  readonly request?: { readonly time: ReturnType<typeof now>; readonly http: ReturnType<typeof describe> };
  readonly contextExtensions: Record<string, string>;
  readonly metadataContext: { readonly filterMetadata: Record<string, ReturnType<typeof structOf>> };
};

/**
 * Calls `Check`, or takes the response to the same call from the cache. A denial stands even if the call then fails.
 */
export async function askGrpc(
  callout: Callout<CalloutContext>,
  question: Question,
  timeoutMs: number,
  call: Parameters<Callout<CalloutContext>["unary"]>[4],
  lookup: Lookup<Uint8Array> | undefined,
): Promise<{ readonly answer: Uint8Array; readonly response: CheckResponse }> {
  const { check } = await envoyMethods();
  const denies = (bytes: Uint8Array): boolean => !decisionOf(check.decode(bytes)).allowed;
  const answer = await callout.unary(check.path, check.encode({ attributes: question }), timeoutMs, denies, {
    ...call,
    ...(lookup !== undefined && {
      recall: (head) => lookup.recall(head, check.encode({ attributes: keyed(question, lookup) })),
    }),
  });
  return { answer, response: read(() => check.decode(answer)) };
}

function read<Message>(decode: () => Message): Message {
  try {
    return decode();
  } catch (error) {
    throw new UnreadableAnswer(messageOf(error), { cause: error });
  }
}

/** Everything that the service is sent, except values that differ for every request and parts that the configuration leaves out. */
function keyed(
  { source, request, ...others }: Question,
  lookup: Lookup<Uint8Array>,
): MessageInitShape<typeof Attributes> {
  return {
    ...others,
    ...(source !== undefined && { source: keyedPeer(source, lookup.ignores("source.address")) }),
    ...(request !== undefined && { request: { http: keyedHttp(request.http, lookup) } }),
  };
}

function keyedHttp({ id: _trace, headers, ...http }: ReturnType<typeof describe>, lookup: Lookup<Uint8Array>) {
  // Assignments to a plain object would lose a field named __proto__.
  const kept = Object.entries(headers).filter(([name]) => !lookup.ignoresHeader(name));
  const left = { ...http, headers: Object.fromEntries(kept) };
  if (lookup.ignores("method")) left.method = left.headers[":method"] = "";
  if (lookup.ignores("path")) left.path = left.headers[":path"] = "";
  if (lookup.ignores("query")) left.path = left.headers[":path"] = left.path.split("?", 1)[0] ?? "";
  if (!lookup.ignores("body")) return left;
  const { body: _text, rawBody: _bytes, ...bodiless } = left;
  delete bodiless.headers["content-length"];
  return { ...bodiless, size: 0n };
}

/** A client's port differs for each connection. */
function keyedPeer({ address, ...others }: ReturnType<typeof peerOf>, withoutAddress: boolean) {
  if (withoutAddress) return others;
  return { ...others, address: peerOf({ address: address.address.value.address, port: 0 }).address };
}

/** `source` and `destination` of the attributes: the addresses of the connection and the client's SPIFFE id. */
export function peers({ source, destination }: Activation) {
  return {
    ...(source !== undefined && { source: peerOf(source) }),
    ...(destination !== undefined && { destination: peerOf(destination) }),
  };
}

function peerOf({
  address,
  port,
  spiffeId,
}: Pick<SourceParts, "address" | "port"> & { readonly spiffeId?: string | undefined }) {
  const value = { address, portSpecifier: { case: "portValue" as const, value: port } };
  return {
    address: { address: { case: "socketAddress" as const, value } },
    ...(spiffeId !== undefined && { principal: spiffeId }),
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
  const headers: Record<string, string> = { ...joinedHeaders(request.headers, wants), ...pseudoHeaders(context) };
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
    ...(body !== undefined && packAsBytes && { rawBody: body.bytes }),
    ...(body !== undefined && !packAsBytes && { body: Buffer.from(body.bytes).toString() }),
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
      requestEdits: [...headerRemovals(ok?.headersToRemove), ...headerEdits(ok?.headers, "set", REQUEST_PSEUDO)],
      responseEdits: headerEdits(ok?.responseHeadersToAdd, "add", NO_PSEUDO),
      metadata,
    };
  if (denied === undefined) return { allowed: false, reply: undefined, metadata };
  const code = denied.status?.code ?? 0;
  return {
    allowed: false,
    reply: {
      status: code >= 200 && code <= 599 ? code : 403,
      headers: replyHeaders(headerEdits(denied.headers, "add", NO_PSEUDO)),
      body: denied.body,
    },
    metadata,
  };
}

/**
 * `compression`: compresses responses. In: the client's `Accept-Encoding` and a response of the backend or of the gateway. Out: the
 * same response with another Content-Encoding, or as it was. It runs after all other response policies, because those read and
 * change bodies that are not compressed.
 */
import { nodeZlib } from "../../base/lazy-node.ts";
import { getHeader, type HeaderList, type HttpResponse, removeHeader, setHeader } from "../../http/message/message.ts";
import { latin1 } from "../../http/message/syntax.ts";
import { applied, Decisions, skipped, unable } from "../contract/decisions.ts";
import type { ContentCoding, PolicyContext, PolicyHooks } from "../contract/types.ts";
import { definePolicy } from "../define/policy.ts";
import { negotiate } from "./accept-encoding.ts";
import { encoderStage, encodeWhole, MAX_WHOLE } from "./encoder.ts";
import type { Compression } from "./schema.ts";

const KIND = "compression";
/** Fields with a digest of the content or of its encoded form (RFC 9530, RFC 3230, RFC 1864): it would be wrong afterwards. */
const DIGEST = /(?:^|[\s,])(?:content-digest|repr-digest|digest|content-md5)(?:$|[\s,])/i;
/**
 * Compressed only if it is listed by name, not by a pattern: event streams are open for hours, each with the memory of an encoder.
 */
const EVENT_STREAM = "text/event-stream";
/** RFC 9111 5.2.1.6 and 5.2.2.6. */
const NO_TRANSFORM = /(?:^|[\s,])no-transform(?:$|[\s,])/i;
const VARIES = /(?:^|[\s,])(?:\*|accept-encoding)(?:$|[\s,])/i;

/** Why a response is not compressed for any client. */
type Unsuitable =
  | { readonly code: "noContent" | "partial" | "encoded" | "noTransform" | "digest" }
  | { readonly code: "contentType"; readonly contentType: string | undefined }
  | { readonly code: "short"; readonly length: number; readonly minSize: number };
type CompressionDecision =
  | Unsuitable
  | { readonly code: "notAccepted" | "busy" }
  | { readonly code: "compressed"; readonly coding: ContentCoding; readonly level: number };

const decisions = new Decisions<CompressionDecision>(KIND, {
  noContent: () => skipped("the response has no content"),
  partial: () => skipped("the response is a part of the content"),
  contentType: ({ contentType }) =>
    skipped(
      contentType === undefined ? "the response has no content type" : `contentTypes does not list ${contentType}`,
    ),
  encoded: () => skipped("the response is encoded already"),
  noTransform: () => skipped("cache-control says no-transform"),
  digest: () => skipped("the response has a digest, which would be wrong afterwards"),
  short: ({ length, minSize }) => skipped(`${length} bytes are less than minSize ${minSize}`),
  notAccepted: () => skipped("the client accepts none of the encodings"),
  busy: () => unable("too many responses are being compressed; this one stays as it is"),
  compressed: ({ coding, level }) => applied(`compressed with ${coding}, level ${level}`, { encoding: coding, level }),
});

export const compression = definePolicy({
  decisions,
  kind: KIND,
  phases: ["route"],
  prepare: (config: Compression) => () => hooksOf(config),
  redact: (config) => config,
});

function hooksOf({ encodings, contentTypes, minSize, levels }: Compression): PolicyHooks {
  const isListed = compileContentTypes(contentTypes);
  // Loaded now instead of by the first response.
  nodeZlib();
  return {
    /** Other policies may change Accept-Encoding, for example so that the backend does not compress. */
    onRequest(context) {
      context.acceptedCoding = negotiate(context.request.headers, encodings);
      return undefined;
    },
    onResponse(context, response) {
      const { trace, request, acceptedCoding: coding } = context;
      const { headers } = response;
      if (response.status === 304) {
        describeCached(request.headers, headers);
        return undefined;
      }
      const unsuitable = reasonToPass(context, response, isListed, minSize);
      if (unsuitable !== undefined) {
        trace?.report(decisions, unsuitable);
        return undefined;
      }
      addVary(headers);
      if (coding === undefined) {
        trace?.report(decisions, { code: "notAccepted" });
        return undefined;
      }
      return compress(context, response, coding, levels[coding]);
    },
  };
}

/** Why this response is not to be compressed for any client. */
function reasonToPass(
  { request, responseBody }: PolicyContext,
  { status, headers }: HttpResponse,
  isListed: (contentType: string) => boolean,
  minSize: number,
): Unsuitable | undefined {
  if (status === 204) return { code: "noContent" };
  if (status === 206 || getHeader(headers, "content-range") !== undefined) return { code: "partial" };
  const contentType = getHeader(headers, "content-type");
  if (contentType === undefined || !isListed(contentType)) return { code: "contentType", contentType };
  if (getHeader(headers, "content-encoding") !== undefined) return { code: "encoded" };
  if (forbidsTransform(headers) || forbidsTransform(request.headers)) return { code: "noTransform" };
  if (hasDigest(headers)) return { code: "digest" };
  const length = Number(getHeader(headers, "content-length") ?? minSize);
  if (length < minSize) return { code: "short", length, minSize };
  // The response to HEAD describes the content that GET would get (RFC 9110 9.3.2).
  return responseBody.empty && request.method !== "HEAD" ? { code: "noContent" } : undefined;
}

/** Changes the head and, unless the request is HEAD, the body. */
function compress(
  context: PolicyContext,
  response: HttpResponse,
  coding: ContentCoding,
  level: number,
): undefined | Promise<undefined> {
  const { request } = context;
  const length = Number(getHeader(response.headers, "content-length") ?? Number.POSITIVE_INFINITY);
  if (request.method === "HEAD") {
    describe(context, response.headers, coding, level);
    removeHeader(response.headers, "content-length");
    return undefined;
  }
  if (length <= MAX_WHOLE) return compressWhole(context, response, coding, level);
  compressStream(context, response, coding, level);
  return undefined;
}

/** The head leaves at once, and the body as it arrives. */
function compressStream(context: PolicyContext, response: HttpResponse, coding: ContentCoding, level: number): void {
  const stage = encoderStage(coding, level);
  if (stage === undefined) {
    context.trace?.report(decisions, { code: "busy" });
    return;
  }
  describe(context, response.headers, coding, level);
  context.onClose(stage.close);
  context.responseBody.through(stage.make);
}

/** The head waits for the body, if there is memory for it; in return it has the compressed length. */
async function compressWhole(
  context: PolicyContext,
  response: HttpResponse,
  coding: ContentCoding,
  level: number,
): Promise<undefined> {
  const whole = await context.responseBody.tryBuffer(MAX_WHOLE);
  if (whole === undefined) {
    compressStream(context, response, coding, level);
    return;
  }
  describe(context, response.headers, coding, level);
  context.responseBody.replace(encodeWhole(coding, level, whole));
}

/** What the head says about content that is compressed. */
function describe({ trace }: PolicyContext, headers: HeaderList, coding: ContentCoding, level: number): void {
  headers.push("content-encoding", latin1(coding));
  // Ranges would be of the compressed bytes, which may differ each time.
  removeHeader(headers, "accept-ranges");
  weakenTag(headers);
  trace?.report(decisions, { code: "compressed", coding, level });
}

/**
 * A 304 has the fields that the 200 would have (RFC 9110 15.4.5), but its content type is not known. If the client names the weak
 * form of the tag, its cached response was compressed here.
 */
function describeCached(request: HeaderList, headers: HeaderList): void {
  const tag = getHeader(headers, "etag");
  if (tag === undefined || isWeak(tag)) return;
  if (getHeader(request, "if-none-match")?.includes(`W/${tag}`) !== true) return;
  weakenTag(headers);
  addVary(headers);
  // They are about the content that is not compressed (RFC 9110 8.6).
  removeHeader(headers, "content-length");
  removeHeader(headers, "accept-ranges");
}

/** A strong tag promises the same bytes; compressed content is only equivalent (RFC 9110 8.8.1). */
function weakenTag(headers: HeaderList): void {
  const tag = getHeader(headers, "etag");
  if (tag !== undefined && !isWeak(tag)) setHeader(headers, "etag", latin1(`W/${tag}`));
}

function isWeak(tag: string): boolean {
  return tag.startsWith("W/");
}

/** Caches must keep a response for each kind of client apart, also where it was not compressed. */
function addVary(headers: HeaderList): void {
  if (!lists(headers, "vary", VARIES)) headers.push("vary", latin1("accept-encoding"));
}

/** In the head, or announced for the trailers (RFC 9110 6.6.2). */
function hasDigest(headers: HeaderList): boolean {
  return headers.some((name, i) => i % 2 === 0 && DIGEST.test(name)) || lists(headers, "trailer", DIGEST);
}

function forbidsTransform(headers: HeaderList): boolean {
  return lists(headers, "cache-control", NO_TRANSFORM);
}

/** Whether a field of this name has a member that `pattern` matches. */
function lists(headers: HeaderList, field: string, pattern: RegExp): boolean {
  return headers.some((name, i) => i % 2 === 0 && name === field && pattern.test(headers[i + 1] as string));
}

/** Compiles the patterns `type/subtype`, `type/*` and `type/*+suffix`. The test takes the value of a Content-Type field. */
export function compileContentTypes(patterns: readonly string[]): (contentType: string) => boolean {
  const exact = new Set<string>();
  const wild: { readonly prefix: string; readonly suffix: string }[] = [];
  for (const pattern of patterns.map((each) => each.toLowerCase())) {
    const star = pattern.indexOf("*");
    if (star === -1) exact.add(pattern);
    else wild.push({ prefix: pattern.slice(0, star), suffix: pattern.slice(star + 1) });
  }
  return (contentType) => {
    const semicolon = contentType.indexOf(";");
    const type = (semicolon === -1 ? contentType : contentType.slice(0, semicolon)).trim().toLowerCase();
    // gRPC compresses its messages itself, and its clients know no Content-Encoding.
    if (type.startsWith("application/grpc")) return false;
    if (exact.has(type)) return true;
    return type !== EVENT_STREAM && wild.some(({ prefix, suffix }) => type.startsWith(prefix) && type.endsWith(suffix));
  };
}

/**
 * `compression`: compresses responses. In: the client's `Accept-Encoding` and a response of the backend or of the gateway. Out: the
 * same response with another Content-Encoding, or as it was. It runs after all other response policies, because those read and
 * change bodies that are not compressed.
 */
import { nodeZlib } from "../../base/lazy-node.ts";
import { getHeader, type HeaderList, type HttpResponse, removeHeader, setHeader } from "../../http/message/message.ts";
import { latin1 } from "../../http/message/syntax.ts";
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

export const compression = definePolicy({
  kind: KIND,
  phases: ["route"],
  traceStage: "compression",
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
        trace?.skipped(KIND, unsuitable);
        return undefined;
      }
      addVary(headers);
      if (coding === undefined) {
        trace?.skipped(KIND, "the client accepts none of the encodings");
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
): string | undefined {
  if (status === 204) return "no content";
  if (status === 206 || getHeader(headers, "content-range") !== undefined) return "a part of the content";
  const contentType = getHeader(headers, "content-type");
  if (contentType === undefined || !isListed(contentType)) return `content type ${contentType ?? "missing"}`;
  if (getHeader(headers, "content-encoding") !== undefined) return "encoded already";
  if (forbidsTransform(headers) || forbidsTransform(request.headers)) return "no-transform";
  if (hasDigest(headers)) return "has a digest";
  const length = getHeader(headers, "content-length");
  if (length !== undefined && Number(length) < minSize) return `${length} bytes`;
  // The response to HEAD describes the content that GET would get (RFC 9110 9.3.2).
  return responseBody.empty && request.method !== "HEAD" ? "no content" : undefined;
}

/** Changes the head and, unless the request is HEAD, the body. */
function compress(
  context: PolicyContext,
  response: HttpResponse,
  coding: ContentCoding,
  level: number,
): undefined | Promise<void> {
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
    context.trace?.skipped(KIND, "too many responses are being compressed", "warn");
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
): Promise<void> {
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
  trace?.applied(KIND, { encoding: coding, level });
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

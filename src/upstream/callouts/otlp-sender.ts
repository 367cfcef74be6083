import { asError } from "../../base/errors.ts";
import type { Send, SendOutcome } from "../../telemetry/otlp/export-queue.ts";
import { type Chunk, EXPORT_METHODS, type Signal } from "../../telemetry/otlp/messages.ts";
import { retryAfter } from "../calls/retry-after.ts";
import { GrpcStatusError } from "../grpc/status.ts";
import { type Callout, NEEDS_STATUS, reasonOf } from "./callout.ts";
import { NEEDS_BODY } from "./http-call.ts";

/** How a collector is called. */
interface Collector {
  readonly protocol: "grpc" | "http";
  /** Path of HTTP requests. */
  readonly path: string;
  /** Milliseconds for one export. */
  readonly timeout: number;
}

/** HTTP statuses after which the same export may be sent again (OTLP specification, "Retryable Response Codes"). */
const REPEATABLE_HTTP = new Set([429, 502, 503, 504]);
/** gRPC statuses of the same kind: cancelled, deadline exceeded, aborted, out of range, unavailable, data loss. */
const REPEATABLE_GRPC = new Set([1, 4, 10, 11, 14, 15]);
/** Retryable only with a `RetryInfo`. */
const RESOURCE_EXHAUSTED = 8;
const MAX_ANSWER = 64 * 1024;

/**
 * A sender for an export queue. `callout` is looked up for each send, because a reload may change how the collector is reached;
 * `encode` makes one request of several chunks. The sender never rejects.
 */
export function otlpSender(
  callout: () => Callout,
  signal: Signal,
  call: Collector,
  encode: (chunks: readonly Chunk[]) => Uint8Array,
): Send {
  const sendOnce = call.protocol === "grpc" ? sendGrpc : sendHttp;
  return async (chunks, gone) => {
    // A separate signal: listeners on `gone`, which lives as long as the queue, would pile up.
    const own = new AbortController();
    const abort = (): void => own.abort();
    gone.addEventListener("abort", abort);
    const context = {
      onCancel: (callback: () => void) => own.signal.addEventListener("abort", callback),
      observer: undefined,
    };
    // A cancelled call never settles.
    const cancelled = new Promise<SendOutcome>((resolve) =>
      context.onCancel(() => resolve({ type: "later", waitMs: undefined, message: "no time is left" })),
    );
    try {
      return await Promise.race([sendOnce(callout(), signal, call, encode(chunks), context), cancelled]);
    } catch (error) {
      return await failed(asError(error));
    } finally {
      gone.removeEventListener("abort", abort);
    }
  };
}

type Context = Omit<Parameters<Callout["http"]>[1], "recall">;

async function sendHttp(
  callout: Callout,
  signal: Signal,
  { path, timeout }: Collector,
  body: Uint8Array,
  context: Context,
): Promise<SendOutcome> {
  const {
    status,
    headers,
    body: answer,
  } = await callout.http(
    {
      method: "POST",
      path,
      headers: ["content-type", "application/x-protobuf", "user-agent", "tracegate"],
      body,
      timeoutMs: timeout,
      maxBytes: MAX_ANSWER,
      headDecides: NEEDS_BODY,
    },
    context,
  );
  if (status >= 200 && status < 300) return taken(signal, answer);
  const message = `status ${status}`;
  if (!REPEATABLE_HTTP.has(status)) return { type: "rejected", message };
  return { type: "later", waitMs: retryAfter(headers, Date.now()), message };
}

async function sendGrpc(
  callout: Callout,
  signal: Signal,
  { timeout }: Collector,
  body: Uint8Array,
  context: Context,
): Promise<SendOutcome> {
  const answer = await callout.unary(EXPORT_METHODS[signal], body, timeout, NEEDS_STATUS, context);
  return taken(signal, answer);
}

async function taken(signal: Signal, answer: Uint8Array): Promise<SendOutcome> {
  if (answer.length === 0) return { type: "taken", rejected: 0, message: "" };
  const { decodeExportResponse } = await import("../../telemetry/otlp/answers.ts");
  return { type: "taken", ...decodeExportResponse(signal, answer) };
}

/** Without a status the export is worth another attempt; with one, the status decides. */
async function failed(error: Error): Promise<SendOutcome> {
  const message = reasonOf(error);
  if (!(error.cause instanceof GrpcStatusError)) return { type: "later", waitMs: undefined, message };
  const { code, details } = error.cause;
  const waitMs =
    details === undefined ? undefined : (await import("../../telemetry/otlp/answers.ts")).decodeRetryDelay(details);
  const repeatable = REPEATABLE_GRPC.has(code) || (code === RESOURCE_EXHAUSTED && waitMs !== undefined);
  return repeatable ? { type: "later", waitMs, message } : { type: "rejected", message };
}

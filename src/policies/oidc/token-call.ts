import type { OutboundTrace } from "../types.ts";

/** Milliseconds. */
const TIMEOUT_MS = 10_000;
/** Bytes. */
const MAX_RESPONSE = 64 * 1024;

/** The call got no readable response. The message may be logged. */
export class TokenCallError extends Error {}

/** `fetch` as oauth4webapi calls it. */
export type TokenFetch = (url: string, options: RequestInit) => Promise<Response>;

/**
 * A `fetch` for one call to the token endpoint, recorded in the trace. It is limited to 10 s and 64 KiB (reference 3.5) and cancelled
 * by `gone`, when the client has closed the exchange. Rejects with TokenCallError.
 */
export function tokenFetch(trace: OutboundTrace | undefined, gone: AbortSignal): TokenFetch {
  return async (url, options) => {
    trace?.started(hostPort(url));
    try {
      const signal = AbortSignal.any([gone, AbortSignal.timeout(TIMEOUT_MS)]);
      const response = await fetch(url, { ...options, signal });
      const body = await readBounded(response);
      trace?.ended(response.status, null);
      // These statuses may have no body, not even an empty one.
      const none = response.status === 204 || response.status === 304;
      return new Response(none ? null : body, { status: response.status, headers: response.headers });
    } catch (error) {
      const message = describe(error);
      trace?.ended(null, message);
      throw new TokenCallError(message);
    }
  };
}

async function readBounded(response: Response): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    size += chunk.length;
    // The error leaves the loop, which cancels the response.
    if (size > MAX_RESPONSE) throw new Error(`the response is longer than ${MAX_RESPONSE} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** The message of `fetch` is only "fetch failed"; the reason is in its cause. */
function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.name === "TimeoutError") return `no response within ${TIMEOUT_MS / 1000} s`;
  return error.cause instanceof Error ? `${error.message}: ${error.cause.message}` : error.message;
}

function hostPort(url: string): string {
  const { hostname, port, protocol } = new URL(url);
  return `${hostname}:${port === "" ? (protocol === "https:" ? 443 : 80) : port}`;
}

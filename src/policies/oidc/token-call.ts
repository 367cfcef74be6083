import { latin1 } from "../../http/message/syntax.ts";
import { reasonOf } from "../../upstream/callouts/callout.ts";
import type { Fetch } from "../../upstream/callouts/fetch.ts";
import type { OutboundTrace } from "../contract/types.ts";

/** Milliseconds. */
const TIMEOUT_MS = 10_000;
/** Bytes. */
const MAX_RESPONSE = 64 * 1024;
/** Fields that the HTTP engine writes itself. */
const OF_ENGINE: ReadonlySet<string> = new Set(["content-length", "host"]);

/** The call got no readable response. The message may be logged. */
export class TokenCallError extends Error {}

/** `fetch` as oauth4webapi calls it. */
export type TokenFetch = (url: string, options: RequestInit) => Promise<Response>;

/**
 * A `fetch` for one call to the token endpoint, recorded in the trace. It is limited to 10 s and 64 KiB (reference 3.5) and cancelled
 * by `gone`, when the client has closed the exchange. Rejects with TokenCallError.
 */
export function tokenFetch(fetch: Fetch, trace: OutboundTrace | undefined, gone: AbortSignal): TokenFetch {
  return async (url, options) => {
    trace?.started(hostPort(url));
    try {
      const { method, headers, body } = new Request(url, options);
      if (method !== "POST" && method !== "GET") throw new Error(`token endpoints cannot be called with ${method}`);
      const fields = [...headers].flatMap(([name, value]) => (OF_ENGINE.has(name) ? [] : [name, latin1(value)]));
      const bytes = body === null ? new Uint8Array() : new Uint8Array(await new Response(body).arrayBuffer());
      const call = { method, headers: fields, body: bytes, timeoutMs: TIMEOUT_MS, maxBytes: MAX_RESPONSE } as const;
      const response = await Promise.race([
        fetch(url, call, (cancel) => gone.addEventListener("abort", cancel, { once: true })),
        // A cancelled call never settles.
        aborted(gone),
      ]);
      trace?.ended(response.status, null);
      // These statuses may have no body, not even an empty one.
      const none = response.status === 204 || response.status === 304;
      return new Response(none ? null : Buffer.from(response.body), {
        status: response.status,
        headers: pairs(response.headers),
      });
    } catch (error) {
      const message = reasonOf(error);
      trace?.ended(null, message);
      throw new TokenCallError(message);
    }
  };
}

function aborted(gone: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    gone.addEventListener("abort", () => reject(new Error("the client closed the connection")), { once: true });
  });
}

function pairs(fields: readonly string[]): [string, string][] {
  return Array.from({ length: fields.length / 2 }, (_, i) => [fields[2 * i] ?? "", fields[2 * i + 1] ?? ""]);
}

function hostPort(url: string): string {
  const { hostname, port, protocol } = new URL(url);
  return `${hostname}:${port === "" ? (protocol === "https:" ? 443 : 80) : port}`;
}

import { jsonOf } from "../../base/fields.ts";
import { getHeader } from "../../http/message/message.ts";
import { reasonOf } from "../../upstream/callouts/callout.ts";
import type { Fetch } from "../../upstream/callouts/fetch.ts";
import type { CalloutResponse } from "../../upstream/callouts/http-call.ts";

/** No key set or discovery document is larger. */
const MAX_BYTES = 1024 * 1024;
/** The start of the gateway waits for it. */
const TIMEOUT_MS = 5_000;
const MAX_REDIRECTS = 5;
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

/**
 * The text of the key set (RFC 7517 5) or discovery document (OpenID Connect Discovery 3) behind a URL. Anything else is rejected, because
 * servers respond with 200 to login pages, errors as JSON, and key sets that are still empty. Rejects with an Error whose message is the
 * reason, in words.
 */
export async function fetchDocument(url: string, fetch: Fetch): Promise<string> {
  const { status, body } = await follow(url, fetch);
  if (status !== 200) throw new Error(`it responds with status ${status}`);
  const text = Buffer.from(body.buffer, body.byteOffset, body.length).toString("utf8");
  const problem = problemOf(text);
  if (problem !== undefined) throw new Error(problem);
  return text;
}

/** Every address in a chain of redirects passes the egress check, and https is never redirected to http. */
async function follow(url: string, fetch: Fetch): Promise<CalloutResponse> {
  let at = url;
  for (let redirects = 0; ; redirects++) {
    const response = await ask(at, fetch);
    const location = getHeader(response.headers, "location");
    if (!REDIRECTS.has(response.status) || location === undefined) return response;
    if (redirects === MAX_REDIRECTS) throw new Error(`it redirects more than ${MAX_REDIRECTS} times`);
    const next = URL.parse(location, at);
    if (next === null) throw new Error("it redirects to something that is not a URL");
    if (at.startsWith("https:") && next.protocol !== "https:") throw new Error("it redirects from https to http");
    // Where a cluster allows only some hosts, only the name of the first host has been checked.
    if (next.hostname !== new URL(url).hostname)
      throw new Error("it redirects to another host, which is not followed; use the URL that it leads to");
    at = next.href;
  }
}

async function ask(url: string, fetch: Fetch): Promise<CalloutResponse> {
  const headers = ["accept", "application/json", "user-agent", "tracegate"];
  try {
    return await fetch(url, { method: "GET", headers, timeoutMs: TIMEOUT_MS, maxBytes: MAX_BYTES });
  } catch (error) {
    throw new Error(reasonOf(error), { cause: error });
  }
}

/** Why the text is not a document at all. The policies check whether they can use one. */
function problemOf(text: string): string | undefined {
  const { keys, jwks_uri } = objectIn(text) ?? {};
  if (Array.isArray(keys)) return keys.some(isKey) ? undefined : "its response is a key set without keys";
  return typeof jwks_uri === "string" ? undefined : "its response is neither a key set nor a discovery document";
}

function isKey(key: { readonly kty?: unknown } | null): boolean {
  return typeof key?.kty === "string";
}

function objectIn(text: string): { readonly keys?: unknown; readonly jwks_uri?: unknown } | undefined {
  const value = jsonOf(text);
  return typeof value === "object" && value !== null ? value : undefined;
}

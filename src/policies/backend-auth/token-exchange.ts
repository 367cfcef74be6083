import type { TokenExchange } from "../../ir/policies.ts";
import { BoundedCache } from "../shared/credentials/verified.ts";
import { tokenFetch } from "../shared/token-call.ts";
import type { OutboundTrace } from "../types.ts";

const GRANT = "urn:ietf:params:oauth:grant-type:token-exchange";
/** Tokens that are kept; each takes one or two KiB. */
const MAX_KEPT = 4096;
/** Milliseconds before its end at which a token is exchanged anew, and how long one without an end is kept. */
const MARGIN = 10_000;
const UNKNOWN_LIFETIME = 60_000;

interface Kept {
  readonly token: Promise<string>;
  /** Milliseconds since the epoch. */
  until: number;
}

/** Exchanges tokens of clients for others (RFC 8693); requests with the same token share one exchange. */
export class TokenExchanger {
  readonly #config: TokenExchange;
  readonly #kept = new BoundedCache<Kept>(MAX_KEPT);

  constructor(config: TokenExchange) {
    this.#config = config;
  }

  /** The token in exchange for `subject`. Rejects with an Error whose message shows no token. */
  exchange(subject: string, trace: OutboundTrace | undefined): Promise<string> {
    const kept = this.#kept.get(subject);
    if (kept !== undefined && Date.now() < kept.until) return kept.token;
    const asked = this.#ask(subject, trace);
    const entry: Kept = { token: asked.then(({ token }) => token), until: Number.POSITIVE_INFINITY };
    this.#kept.set(subject, entry);
    asked.then(
      ({ lifetime }) => {
        entry.until = Date.now() + lifetime;
      },
      () => this.#kept.delete(subject),
    );
    return entry.token;
  }

  async #ask(subject: string, trace: OutboundTrace | undefined): Promise<{ token: string; lifetime: number }> {
    // Others may wait for the same exchange: it goes on when the client that began it is gone.
    const call = tokenFetch(trace, new AbortController().signal);
    const response = await call(this.#config.tokenEndpoint, {
      method: "POST",
      redirect: "error",
      headers: { "content-type": "application/x-www-form-urlencoded", accept: "application/json", ...this.#client() },
      body: this.#form(subject).toString(),
    });
    const answer = parse(await response.text());
    if (response.status !== 200) {
      const code = typeof answer.error === "string" ? ` (${answer.error.slice(0, 64)})` : "";
      throw new Error(`the token endpoint answers with status ${response.status}${code}`);
    }
    if (typeof answer.access_token !== "string" || answer.access_token === "")
      throw new Error("the token endpoint answers without an access_token");
    const lifetime = typeof answer.expires_in === "number" ? answer.expires_in * 1000 - MARGIN : UNKNOWN_LIFETIME;
    return { token: answer.access_token, lifetime };
  }

  #form(subject: string): URLSearchParams {
    const { audience, resource, scopes, subjectTokenType, requestedTokenType } = this.#config;
    return new URLSearchParams({
      grant_type: GRANT,
      subject_token: subject,
      subject_token_type: subjectTokenType,
      ...(audience !== undefined && { audience }),
      ...(resource !== undefined && { resource }),
      ...(scopes.length > 0 && { scope: scopes.join(" ") }),
      ...(requestedTokenType !== undefined && { requested_token_type: requestedTokenType }),
    });
  }

  /** RFC 6749 2.3.1. */
  #client(): Record<string, string> {
    const { clientId, clientSecret } = this.#config;
    if (clientId === undefined || clientSecret === undefined) return {};
    const pair = `${encodeURIComponent(clientId)}:${encodeURIComponent(clientSecret.trim())}`;
    return { authorization: `Basic ${Buffer.from(pair).toString("base64")}` };
  }
}

function parse(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? { ...value } : {};
  } catch {
    return {};
  }
}

import { GatewayError } from "../../base/errors.ts";
import type { CallResponse } from "../../upstream/call.ts";
import { type Callout, reasonOf } from "../../upstream/callout.ts";
import { observerOf } from "../calls/call-for.ts";
import type { Callouts } from "../deps.ts";
import type { ConfigPath } from "../policy-error.ts";
import type { CalloutContext } from "../types.ts";
import { type Authenticate, clientAuthentication } from "./client-auth.ts";
import type { TokenEndpoint as Config } from "./token-endpoint-schema.ts";

/** Bytes of an answer; tokens are a few KiB. */
const MAX_ANSWER = 64 * 1024;
/** Characters of an error code that are logged. */
const MAX_CODE = 64;

type Form = readonly (readonly [string, string])[];

export interface IssuedToken {
  readonly token: string;
  /** Milliseconds; undefined when the endpoint does not say. */
  readonly lifetime: number | undefined;
}

/** Makes an endpoint of a configuration. */
export type ConnectEndpoint = (callouts: Callouts) => TokenEndpoint;

/** Throws a PolicyError, whose path begins with `path`, for keys that cannot be used. */
export function prepareEndpoint(config: Config, path: ConfigPath): ConnectEndpoint {
  const authenticate = clientAuthentication(config.clientAuth, [...path, "clientAuth"]);
  return (callouts) => new TokenEndpoint(config, authenticate, callouts(config.target, config.policies));
}

/** One OAuth 2.0 token endpoint and what the gateway shows to it. */
export class TokenEndpoint {
  readonly #path: string;
  readonly #timeout: number;
  readonly #callout: Callout<CalloutContext>;
  readonly #authenticate: Authenticate;

  constructor(config: Config, authenticate: Authenticate, callout: Callout<CalloutContext>) {
    this.#path = config.path;
    this.#timeout = config.timeout;
    this.#callout = callout;
    this.#authenticate = authenticate;
  }

  /**
   * The token that is given for `grant`. `type`: what it has to be (RFC 8693 2.2.1); undefined = whatever bearer token.
   * Rejects with a GatewayError: TG_INVALID_REQUEST when the endpoint refuses the grant, which came from the client, else
   * TG_BACKEND_AUTH. Neither shows a token.
   */
  async request(grant: Form, calloutContext: CalloutContext, type?: string): Promise<IssuedToken> {
    const response = await this.#call(grant, calloutContext);
    const answer = parse(response.body);
    if (response.status < 200 || response.status > 299) throw refusal(response.status, answer);
    const { access_token: token, token_type: tokenType, issued_token_type: issued, expires_in: expires } = answer;
    if (typeof token !== "string" || token === "") throw failure("the token endpoint answers without an access_token");
    if (type !== undefined && issued !== undefined && issued !== type)
      throw failure(`the token endpoint gives ${printable(issued)} where ${type} was asked for`);
    // What is no access token has the type N_A.
    if (type !== ID_JAG && printable(tokenType).toLowerCase() !== "bearer")
      throw failure(`the token endpoint gives a token of type ${printable(tokenType)}, and only Bearer can be used`);
    const lifetime = typeof expires === "number" && expires >= 0 ? expires * 1000 : undefined;
    return { token, lifetime };
  }

  async #call(grant: Form, calloutContext: CalloutContext): Promise<CallResponse> {
    const { headers, form } = await this.#authenticate();
    const pairs = [...grant, ...form].map(([name, value]): [string, string] => [name, value]);
    const body = new URLSearchParams(pairs).toString();
    try {
      return await this.#callout.http(
        {
          method: "POST",
          path: this.#path,
          headers: ["content-type", "application/x-www-form-urlencoded", "accept", "application/json", ...headers],
          body: Buffer.from(body),
          timeoutMs: this.#timeout,
          maxBytes: MAX_ANSWER,
        },
        // Others may wait for the same token: the call goes on when the client that began it is gone.
        { onCancel: () => {}, observer: observerOf(calloutContext, "http"), calloutContext },
      );
    } catch (error) {
      throw failure(`the token endpoint cannot be asked: ${reasonOf(error)}`, error);
    }
  }
}

/** An assertion of an identity provider for a server of another one. */
export const ID_JAG = "urn:ietf:params:oauth:token-type:id-jag";

/** 401 and 403 are about the gateway's own credentials, others of 400 to 499 about the token. */
function refusal(status: number, { error }: Readonly<Record<string, unknown>>): GatewayError {
  const code = error === undefined ? "" : ` (${printable(error)})`;
  const why = `the token endpoint answers with status ${status}${code}`;
  const clients = status >= 400 && status < 500 && status !== 401 && status !== 403;
  return clients ? new GatewayError("TG_INVALID_REQUEST", why) : failure(why);
}

/** What makes the token of a backend fail without the client's doing. */
export function failure(why: string, cause?: unknown): GatewayError {
  return new GatewayError("TG_BACKEND_AUTH", why, cause);
}

function printable(value: unknown): string {
  return String(value)
    .slice(0, MAX_CODE)
    .replace(/[^\x20-\x7e]/g, "?");
}

function parse(body: Uint8Array): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(Buffer.from(body).toString());
    return typeof value === "object" && value !== null ? { ...value } : {};
  } catch {
    return {};
  }
}

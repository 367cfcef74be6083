import { GatewayError } from "../../base/errors.ts";
import { fieldsOf, jsonOf } from "../../base/fields.ts";
import { type Callout, reasonOf } from "../../upstream/callouts/callout.ts";
import { type CalloutResponse, NEEDS_BODY } from "../../upstream/callouts/http-call.ts";
import type { Callouts } from "../contract/deps.ts";
import type { ConfigPath } from "../contract/policy-error.ts";
import type { CalloutContext } from "../contract/types.ts";
import type { TokenEndpoint as Config } from "../schema/token-endpoint.ts";
import { observerOf } from "../shared/call-for.ts";
import { type Authenticate, clientAuthentication } from "./client-auth.ts";

/** Bytes of a response; tokens are a few KiB. */
const MAX_ANSWER = 64 * 1024;
/** Characters of an error code that go into logs. */
const MAX_CODE = 64;

type Form = readonly (readonly [string, string])[];

export interface IssuedToken {
  readonly token: string;
  /** Milliseconds; undefined if the endpoint does not say. */
  readonly lifetime: number | undefined;
}

/** Binds an endpoint to the callouts of a data plane. */
type ConnectEndpoint = (callouts: Callouts) => TokenEndpoint;

/** Prepares client authentication. Throws PolicyError, whose path begins with `path`, for an invalid key. */
export function prepareEndpoint(config: Config, path: ConfigPath): ConnectEndpoint {
  const authenticate = clientAuthentication(config.clientAuth, [...path, "clientAuth"]);
  return (callouts) => new TokenEndpoint(config, authenticate, callouts(config.target, config.policies));
}

/** A client of one OAuth 2.0 token endpoint (RFC 6749, section 3.2). */
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
   * Requests a token for `grant`. `type`: the required type (RFC 8693, section 2.2.1); undefined = any bearer token. Rejects with
   * GatewayError: TG_INVALID_REQUEST if the endpoint rejects the grant, which holds the client's token, else TG_BACKEND_AUTH. Messages
   * contain no token.
   */
  async request(grant: Form, calloutContext: CalloutContext, type?: string): Promise<IssuedToken> {
    const response = await this.#call(grant, calloutContext);
    const answer = fieldsOf(jsonOf(Buffer.from(response.body).toString()));
    if (response.status < 200 || response.status > 299) throw rejection(response.status, answer);
    const { access_token: token, token_type: tokenType, issued_token_type: issued, expires_in: expires } = answer;
    if (typeof token !== "string" || token === "")
      throw failure("the response of the token endpoint has no access_token");
    if (type !== undefined && issued !== undefined && issued !== type)
      throw failure(`the token endpoint issued ${printable(issued)}, but ${type} was requested`);
    // `token_type` of a token that is not an access token is N_A (RFC 8693, section 2.2.1).
    if (type !== ID_JAG && printable(tokenType).toLowerCase() !== "bearer")
      throw failure(`the token endpoint issued a token of type ${printable(tokenType)}, but only Bearer can be used`);
    const lifetime = typeof expires === "number" && expires >= 0 ? expires * 1000 : undefined;
    return { token, lifetime };
  }

  async #call(grant: Form, calloutContext: CalloutContext): Promise<CalloutResponse> {
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
          headDecides: NEEDS_BODY,
        },
        // Not cancelled with the client: other requests may wait for the same token.
        { onCancel: () => {}, observer: observerOf(calloutContext, "http"), calloutContext },
      );
    } catch (error) {
      throw failure(`the call to the token endpoint failed: ${reasonOf(error)}`, error);
    }
  }
}

/** Type of an identity assertion for the authorization server of another domain (ID-JAG, an IETF draft). */
export const ID_JAG = "urn:ietf:params:oauth:token-type:id-jag";

/** 401 and 403 concern the gateway's credentials, other statuses of 400 to 499 the client's token. */
function rejection(status: number, { error }: Readonly<Record<string, unknown>>): GatewayError {
  const code = error === undefined ? "" : ` (${printable(error)})`;
  const why = `the token endpoint responds with status ${status}${code}`;
  const clients = status >= 400 && status < 500 && status !== 401 && status !== 403;
  return clients ? new GatewayError("TG_INVALID_REQUEST", why) : failure(why);
}

/** A failure that the client did not cause. */
function failure(why: string, cause?: unknown): GatewayError {
  return new GatewayError("TG_BACKEND_AUTH", why, cause);
}

/** Text of the endpoint for logs: short, and without control characters that could forge log lines. */
function printable(value: unknown): string {
  return String(value)
    .slice(0, MAX_CODE)
    .replace(/[^\x20-\x7e]/g, "?");
}

/**
 * `frontendPolicies.networkExtAuthz` (reference 1.10 and 3.8): delegates the decision whether a client may connect to a service.
 * In: the addresses of a connection. Out: allowed, with metadata for all requests on it, or the reason for closing it. Called by
 * the connection stages of `src/proxy/ingress/`, between TLS and the first request.
 */
import { type Logger, LogThrottle } from "../../base/log.ts";
import type { Activation, CelEnvironment } from "../../cel/index.ts";
import { type Callout, reasonOf } from "../../upstream/callout.ts";
import type { OnCancel } from "../../upstream/upstream.ts";
import { structOf } from "../envoy/convert.ts";
import { envoyMethods } from "../envoy/load-methods.ts";
import { compileAll, evaluateAll } from "../shared/expressions.ts";
import type { CalloutContext } from "../types.ts";
import { DecisionCache } from "./cache.ts";
import { AuthzRequestError } from "./decision.ts";
import { decisionOf, NAMESPACE, peers } from "./grpc.ts";
import { AuthzRequestTemplate, MAX_RESPONSE } from "./http-request.ts";
import type { NetworkExtAuthz } from "./network-schema.ts";
import type { ExtAuthzGrpc } from "./schema.ts";

const NO_BYTES = new Uint8Array(0);
/** Milliseconds between warnings about a failing service: each connection would write one. */
const WARN_INTERVAL = 10_000;

/** The decision about a connection, which all its requests share. */
export type NetworkDecision =
  | {
      readonly allowed: true;
      /** What expressions of requests on this connection read as `extauthz`. */
      readonly metadata: Readonly<Record<string, unknown>> | undefined;
    }
  /** `why` is for the log. */
  | { readonly allowed: false; readonly why: string };

/**
 * Calls the service about a connection. `deniedWith`: the status of a denial, which decides whether it may be cached. Rejects when
 * there is no usable response.
 */
type AskAbout = (
  callout: Callout<CalloutContext>,
  variables: Activation,
  onCancel: OnCancel,
) => Promise<{ readonly decision: NetworkDecision; readonly deniedWith: number | undefined }>;

const ALLOWED: NetworkDecision = { allowed: true, metadata: undefined };

/** `networkExtAuthz` as far as it does not depend on a thread: made when the configuration loads. */
export interface NetworkAuthz {
  readonly config: NetworkExtAuthz;
  readonly ask: AskAbout;
  readonly cache: DecisionCache<NetworkDecision> | undefined;
}

/** Throws CelError for expressions that cannot be used, and PolicyError for headers that cannot be set. */
export function prepareNetworkAuthz(config: NetworkExtAuthz, cel: CelEnvironment): NetworkAuthz {
  const { protocol, timeout, cache } = config;
  return {
    config,
    ask: "grpc" in protocol ? askGrpc(protocol.grpc, timeout, cel) : httpCheck(protocol.http, timeout, cel),
    cache: cache === undefined ? undefined : new DecisionCache(cache, "network", cel),
  };
}

/** The prepared policy with its callout and log, in one worker. Expressions read the connection, since there is no request yet. */
export class NetworkAuthorizer {
  readonly #config: NetworkExtAuthz;
  readonly #ask: AskAbout;
  readonly #callout: Callout<CalloutContext>;
  readonly #cache: DecisionCache<NetworkDecision> | undefined;
  readonly #log: Logger | undefined;
  readonly #warnings = new LogThrottle(WARN_INTERVAL);

  /** `log` reports clients that connect because the service has failed. */
  constructor({ config, ask, cache }: NetworkAuthz, callout: Callout<CalloutContext>, log?: Logger) {
    this.#config = config;
    this.#ask = ask;
    this.#cache = cache;
    this.#callout = callout;
    this.#log = log;
  }

  /** `variables` are those of the connection. Never rejects; never settles when it is cancelled. */
  async ask(variables: Activation, onCancel: OnCancel): Promise<NetworkDecision> {
    const key = this.#cache?.keyOf(variables);
    const known = key === undefined ? undefined : this.#cache?.get(key);
    if (known !== undefined) return known;
    try {
      const { decision, deniedWith } = await this.#ask(this.#callout, variables, onCancel);
      if (key !== undefined) this.#cache?.put(key, decision, deniedWith, variables);
      return decision;
    } catch (error) {
      const why = reasonOf(error);
      if (this.#config.failureMode !== "allow" || error instanceof AuthzRequestError) return { allowed: false, why };
      this.#warn(why);
      return ALLOWED;
    }
  }

  /** At most one line per interval. `unreported`: clients admitted since the last line for the same reason. */
  #warn(error: string): void {
    this.#warnings.run((unreported) =>
      this.#log?.warn("networkExtAuthz has failed; connections are allowed", {
        error,
        unreported: unreported === 0 ? undefined : unreported,
      }),
    );
  }
}

/** GET `/` unless configured otherwise; 2xx allows. */
function httpCheck(
  http: ConstructorParameters<typeof AuthzRequestTemplate>[0],
  timeoutMs: number,
  cel: CelEnvironment,
): AskAbout {
  const template = new AuthzRequestTemplate(http, { request: "network", response: "networkResponse" }, cel);
  return async (callout, variables, onCancel) => {
    const target = template.target(variables);
    const authority = template.authority(variables);
    const answer = await callout.http(
      {
        method: template.method(variables) ?? "GET",
        path: target === undefined ? "/" : target.path + target.search,
        ...(authority !== undefined && { authority }),
        headers: template.headers(variables),
        body: template.body(variables) ?? NO_BYTES,
        timeoutMs,
        maxBytes: MAX_RESPONSE,
      },
      { onCancel, observer: undefined },
    );
    const { status } = answer;
    return status >= 200 && status < 300
      ? { decision: { allowed: true, metadata: template.metadataFrom(variables, answer) }, deniedWith: undefined }
      : { decision: { allowed: false, why: `the service responded with ${status}` }, deniedWith: status };
  };
}

/** The same `Check` as for requests, without the part about HTTP. */
function askGrpc({ context = {}, metadata = {} }: ExtAuthzGrpc, timeoutMs: number, cel: CelEnvironment): AskAbout {
  const named = compileAll(metadata, "network", cel);
  return async (callout, variables, onCancel) => {
    const { check } = await envoyMethods();
    const message = check.encode({
      attributes: {
        ...peers(variables),
        contextExtensions: context,
        metadataContext: { filterMetadata: { [NAMESPACE]: structOf(evaluateAll(named, variables)) } },
      },
    });
    const answer = await callout.unary(check.path, message, timeoutMs, { onCancel, observer: undefined });
    const decision = decisionOf(check.decode(answer));
    if (decision.allowed) return { decision: { allowed: true, metadata: decision.metadata }, deniedWith: undefined };
    const status = decision.reply?.status ?? 403;
    return { decision: { allowed: false, why: `the service denied with ${status}` }, deniedWith: status };
  };
}

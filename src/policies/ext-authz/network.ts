/**
 * `frontendPolicies.networkExtAuthz` (docs/configuration.md#networkextauthz): delegates the decision whether a client may connect
 * to a service. In: the addresses of a connection. Out: allowed, with metadata for all requests on it, or the reason for closing
 * it. Called by the connection stages of `src/proxy/ingress/`, between TLS and the first request.
 */
import { type Logger, LogThrottle } from "../../base/log.ts";
import type { Activation, CelEnvironment } from "../../cel/index.ts";
import { type Callout, reasonOf } from "../../upstream/callouts/callout.ts";
import type { CalloutResponse } from "../../upstream/callouts/http-call.ts";
import type { OnCancel } from "../../upstream/connections/upstream.ts";
import type { CalloutContext } from "../contract/types.ts";
import { structOf } from "../envoy/convert.ts";
import { compileAll, evaluateAll } from "../shared/expressions.ts";
import { AnswerCache } from "./cache.ts";
import { denialStatus, isExcused } from "./decision.ts";
import { askGrpc, decisionOf, NAMESPACE, peers } from "./grpc.ts";
import { AuthzRequestTemplate, denies, sizeOf } from "./http-request.ts";
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

/** Asks the service about a connection, or uses a cached response. Rejects if there is no usable response. */
type AskAbout = (
  callout: Callout<CalloutContext>,
  variables: Activation,
  onCancel: OnCancel,
) => Promise<NetworkDecision>;

const ALLOWED: NetworkDecision = { allowed: true, metadata: undefined };

/** `networkExtAuthz` as far as it does not depend on a thread: made when the configuration loads. */
interface NetworkAuthz {
  readonly config: NetworkExtAuthz;
  readonly ask: AskAbout;
}

/** Throws CelError for expressions that cannot be used, and PolicyError for headers that cannot be set. */
export function prepareNetworkAuthz(config: NetworkExtAuthz, cel: CelEnvironment): NetworkAuthz {
  const { protocol } = config;
  return {
    config,
    ask: "grpc" in protocol ? grpcCheck(config, protocol.grpc, cel) : httpCheck(config, protocol.http, cel),
  };
}

/** The prepared policy with its callout and log, in one worker. Expressions read the connection, since there is no request yet. */
export class NetworkAuthorizer {
  readonly #config: NetworkExtAuthz;
  readonly #ask: AskAbout;
  readonly #callout: Callout<CalloutContext>;
  readonly #log: Logger | undefined;
  readonly #warnings = new LogThrottle(WARN_INTERVAL);

  /** `log` reports clients that connect because the service has failed. */
  constructor({ config, ask }: NetworkAuthz, callout: Callout<CalloutContext>, log?: Logger) {
    this.#config = config;
    this.#ask = ask;
    this.#callout = callout;
    this.#log = log;
  }

  /** `variables` are those of the connection. Never rejects; never settles when it is cancelled. */
  async ask(variables: Activation, onCancel: OnCancel): Promise<NetworkDecision> {
    try {
      return await this.#ask(this.#callout, variables, onCancel);
    } catch (error) {
      const why = reasonOf(error);
      if (this.#config.failureMode !== "allow" || !isExcused(error)) return { allowed: false, why };
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

/** What the calls are for. */
const SCOPE = "network_ext_authz";

/** GET `/` unless configured otherwise; 2xx allows. */
function httpCheck(
  { timeout, cache: cached }: NetworkExtAuthz,
  http: ConstructorParameters<typeof AuthzRequestTemplate>[0],
  cel: CelEnvironment,
): AskAbout {
  const cache = cached === undefined ? undefined : new AnswerCache<CalloutResponse>(cached, "network", cel);
  const template = new AuthzRequestTemplate(http, { request: "network", response: "networkResponse" }, cel);
  return async (callout, variables, onCancel) => {
    const lookup = cache?.lookup(variables);
    const own = { method: "GET", path: "/", headers: template.headers(variables), body: NO_BYTES, timeoutMs: timeout };
    const call = { scope: SCOPE, onCancel, observer: undefined };
    const answer = await template.ask(variables, own, callout, call, lookup);
    const { status } = answer;
    const denied = denies(status);
    if (answer.cut === undefined) lookup?.keep(answer, sizeOf(answer), denied ? status : undefined, variables);
    return denied
      ? { allowed: false, why: `the service responded with ${status}` }
      : { allowed: true, metadata: template.metadataFrom(variables, answer) };
  };
}

/** The same `Check` as for requests, without the part about HTTP. */
function grpcCheck(
  { timeout, cache: cached }: NetworkExtAuthz,
  { context = {}, metadata = {} }: ExtAuthzGrpc,
  cel: CelEnvironment,
): AskAbout {
  const named = compileAll(metadata, "network", cel);
  const cache = cached === undefined ? undefined : new AnswerCache<Uint8Array>(cached, "network", cel);
  return async (callout, variables, onCancel) => {
    const lookup = cache?.lookup(variables);
    const question = {
      ...peers(variables),
      contextExtensions: context,
      metadataContext: { filterMetadata: { [NAMESPACE]: structOf(evaluateAll(named, variables)) } },
    };
    const call = { scope: SCOPE, onCancel, observer: undefined };
    const { answer, response } = await askGrpc(callout, question, timeout, call, lookup);
    const decision = decisionOf(response);
    const deniedWith = denialStatus(decision);
    lookup?.keep(answer, answer.length, deniedWith, variables);
    return decision.allowed
      ? { allowed: true, metadata: decision.metadata }
      : { allowed: false, why: `the service denied with ${deniedWith}` };
  };
}

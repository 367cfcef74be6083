import type { Logger } from "../../base/log.ts";
import type { CelEnvironment } from "../../cel/index.ts";
import type { HeaderList } from "../../http/message/message.ts";
import type { Metrics } from "../../telemetry/metrics.ts";
import type { Phase } from "../../trace/events.ts";
import type { Callout, CalloutAnswers } from "../../upstream/callouts/callout.ts";
import type { Fetch } from "../../upstream/callouts/fetch.ts";
import type { Target } from "../../upstream/settings/target.ts";
import type { RequestCounts } from "../request-counts/request-counts.ts";
import type { CallPolicies } from "../schema/call.ts";
import type { SharedSessions } from "../shared-sessions/shared-sessions.ts";
import type { TokenBuckets } from "../token-buckets/buckets.ts";
import type { CredentialNames } from "./credential-names.ts";
import type { OwnFields } from "./own-fields.ts";
import type { CalloutContext } from "./types.ts";

/** Makes a client for a target, with the policies of its calls. */
export type Callouts = (target: Target, policies?: CallPolicies) => Callout<CalloutContext>;

/** What the policies of a thread share, whatever the configuration. */
export interface ThreadEnvironment {
  /** Lower-case names of headers whose values dumps and traces redact. */
  readonly hidden: ReadonlySet<string>;
  /** Token buckets of `localRateLimit`, in memory that all workers share, so that limits hold for the process. */
  readonly buckets: TokenBuckets;
  /** Requests in progress of `concurrencyLimit`, in memory that all workers share too. */
  readonly requestCounts: RequestCounts;
  /** Calls URLs that a configuration names, such as a token endpoint. */
  readonly fetch: Fetch;
  /** For events outside of requests. */
  readonly log?: Logger | undefined;
  /** Requests a new fetch of a document that may have changed. Cheap: most calls do nothing. */
  readonly wantDocument?: ((url: string) => void) | undefined;
  /** Key that seals the cookies of `oidc`, 32 bytes; undefined if OIDC_COOKIE_SECRET is not set. */
  readonly oidcCookieKey?: Uint8Array | undefined;
  /** What the threads share about the sessions of `oidc`; undefined where no requests are served. */
  readonly oidcSessions?: SharedSessions | undefined;
  /** Counts logins, refreshes and logouts; undefined where no requests are served. */
  readonly oidcCounters?: Pick<Metrics, "count"> | undefined;
  /** Key that seals the sessions of `sessionPersistence`, 32 bytes, the same in all workers; undefined where no requests are served. */
  readonly sessionKey?: Uint8Array | undefined;
  /** Respond in place of the services that policies call; only in rehearsals. */
  readonly answers?: CalloutAnswers | undefined;
  /** Takes the place of the test of header fields that are not known; only in rehearsals. */
  readonly assumedFields?: AssumeFields | undefined;
  /**
   * Whether a condition on the client's address is met; undefined: the address is known. `reported`: a trusted proxy has said who the client
   * is. Only in rehearsals.
   */
  readonly assumedAddress?: ((condition: string, reported: boolean) => boolean | undefined) | undefined;
  /** What a policy is bound to instead of `deps`; only in rehearsals. `key`: its key in the set. `config`: with its secrets. */
  readonly rehearsed?: ((deps: PolicyDeps, key: string, config: object) => PolicyDeps) | undefined;
}

/**
 * Whether a condition is met that reads header fields which the request may have had; undefined: they are known, so the condition is to be
 * tested. `fields`: lower-case names. `condition`: as explanations show it. `headers`: of the request.
 */
export type AssumeFields = (fields: readonly string[], condition: string, headers: HeaderList) => boolean | undefined;

/**
 * What a credential is taken for: invalid, or what the gateway knows about the client that has it, such as claims. undefined: it is
 * verified. `presented`: undefined without one. `headers`: of the request.
 */
export type AssumeCredential = (
  kind: "jwt" | "oidc" | "basicAuth" | "apiKey",
  presented: string | undefined,
  headers: HeaderList,
) => "invalid" | Readonly<Record<string, unknown>> | undefined;

/** What the policies of one configuration share. */
export interface PolicyEnvironment extends ThreadEnvironment {
  /** Variables and functions of expressions, including those that this configuration defines. */
  readonly cel: CelEnvironment;
  /** Clients live as long as the configuration that names the service; pools outlive a reload. */
  readonly callouts: Callouts;
  /** Where requests carry credentials; policies add their locations. */
  readonly credentials: CredentialNames;
  /** Header fields that the gateway sets or clears; policies add theirs, and clients may not imitate them. */
  readonly ownFields: OwnFields;
}

/** What a policy is bound to, besides its own configuration. */
export interface PolicyDeps extends PolicyEnvironment {
  readonly phase: Phase;
  /** Phase, owner and kind: the name under which state survives a reload, such as a session. */
  readonly identity: string;
  /** The same with the place where the policy is written as the owner: the name of state that everything it applies to shares, such as a token bucket. */
  readonly shared: string;
  /** It is a shadow policy: what it shares with enforced ones, such as a queue, is theirs first. */
  readonly shadow?: true;
  /** Takes the place of the verification of a credential; only in rehearsals. */
  readonly assumedCredential?: AssumeCredential | undefined;
}

import type { Logger } from "../base/log.ts";
import type { CelEnvironment } from "../cel/index.ts";
import type { Phase } from "../trace/events.ts";
import type { Callout } from "../upstream/callout.ts";
import type { Target } from "../upstream/target.ts";
import type { CallPolicies } from "./calls/schema.ts";
import type { TokenBuckets } from "./local-rate-limit/buckets.ts";
import type { CredentialNames } from "./shared/credentials/names.ts";
import type { OwnFields } from "./shared/own-fields.ts";
import type { CalloutContext } from "./types.ts";

/** Services that policies ask, by target, with the policies of their calls. */
export type Callouts = (target: Target, policies?: CallPolicies) => Callout<CalloutContext>;

/** What the policies of a thread share, whatever the configuration. */
export interface ThreadEnvironment {
  /** Lower-case names of headers whose values are never shown. */
  readonly hidden: ReadonlySet<string>;
  /** Shared by all threads. */
  readonly buckets: TokenBuckets;
  /** Of what policies do beside requests. */
  readonly log?: Logger | undefined;
  /** What `oidc` seals its cookies with, 32 bytes; undefined when the environment has no key. */
  readonly oidcCookieKey?: Uint8Array | undefined;
}

/** What the policies of one configuration share. */
export interface PolicyEnvironment extends ThreadEnvironment {
  /** What expressions may name, with the functions that this configuration defines. */
  readonly cel: CelEnvironment;
  /** A service lives as long as the configuration that names it. */
  readonly callouts: Callouts;
  /** Policies that read credentials add where. */
  readonly credentials: CredentialNames;
  /** Policies that set or clear fields of requests add which. */
  readonly ownFields: OwnFields;
}

/** What every policy is created with besides its own configuration. */
export interface PolicyDeps extends PolicyEnvironment {
  readonly phase: Phase;
  /** Where the policy is attached, with its phase and kind: what survives a reload is kept under this name. */
  readonly identity: string;
}

/** How names become addresses. */
import type { Milliseconds } from "../../base/durations.ts";

export type LookupFamily = "All" | "Auto" | "V4Preferred" | "V4Only" | "V6Only";

/** `dns` of a backend (docs/load-balancing.md#names); what is absent has its default. */
export interface DnsSettings {
  /** `all` (default): each address of a name is an endpoint. `first`: the name is one endpoint, whose connections try its addresses in turn. */
  readonly mode?: "all" | "first" | undefined;
  /** Default: `config.dns.lookupFamily`. */
  readonly family?: LookupFamily | undefined;
  /** Least time between two lookups of a name that is followed. Default: 5 s. */
  readonly minTtl?: Milliseconds | undefined;
}

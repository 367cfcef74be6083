/** What a compiled route refers to, so that the next configuration can take it over. */
import { CredentialNames } from "../../policies/contract/credential-names.ts";
import { OwnFields } from "../../policies/contract/own-fields.ts";
import type { CalloutContext } from "../../policies/contract/types.ts";
import type { Callout } from "../../upstream/callouts/callout.ts";
import type { Destination } from "../../upstream/destinations/destinations.ts";

/** A service that policies call, with what it uses itself. */
export interface TrackedCallout {
  readonly callout: Callout<CalloutContext>;
  readonly uses: Uses;
}

/**
 * What a compiled part of a configuration holds, and what it contributes to the whole configuration. A part that the next configuration
 * takes over without compiling it holds and contributes the same there.
 */
export class Uses {
  /** Their endpoints live as long as a configuration holds them. */
  readonly destinations = new Set<Destination>();
  /** By target and policies. */
  readonly callouts = new Map<string, TrackedCallout>();
  /** Services whose workloads are proxies of a tunnel: parts that use them have to be compiled again when they change. */
  readonly proxies = new Set<string>();
  readonly credentials: CredentialNames;
  readonly ownFields: OwnFields;

  constructor(credentials = new CredentialNames(), ownFields = new OwnFields()) {
    this.credentials = credentials;
    this.ownFields = ownFields;
  }

  /** Whether there is nothing besides destinations. */
  get destinationsOnly(): boolean {
    return this.callouts.size === 0 && this.proxies.size === 0 && this.credentials.empty && this.ownFields.empty;
  }

  include(other: Uses): void {
    for (const destination of other.destinations) this.destinations.add(destination);
    for (const [key, known] of other.callouts) this.callouts.set(key, known);
    for (const proxy of other.proxies) this.proxies.add(proxy);
    this.credentials.include(other.credentials);
    this.ownFields.include(other.ownFields);
  }
}

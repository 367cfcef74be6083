import type { CredentialLocation } from "../../../ir/policies.ts";

/**
 * Where requests carry credentials, in one configuration: what stands there is the clients' secret and is shown nowhere.
 * Cookies are not among them, because no cookie is shown; what an expression reads cannot be told.
 */
export class CredentialNames {
  /** Lower-case. */
  readonly headers = new Set<string>();
  /** Decoded. */
  readonly parameters = new Set<string>();

  add(location: CredentialLocation): void {
    if ("header" in location) this.headers.add(location.header.name);
    else if ("queryParameter" in location) this.parameters.add(location.queryParameter.name);
  }
}

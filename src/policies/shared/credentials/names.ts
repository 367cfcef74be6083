import type { CredentialLocation } from "./location-schema.ts";

/**
 * Where requests carry credentials, in one configuration: what stands there is the clients' secret and is shown nowhere.
 * Cookies are not among them, because no cookie is shown; what an expression reads cannot be told.
 */
export class CredentialNames {
  /** Lower-case. */
  readonly headers = new Set<string>();
  /** Decoded. */
  readonly parameters = new Set<string>();
  readonly #parametersOfPaths = new Map<string, ReadonlySet<string>>();

  get empty(): boolean {
    return this.headers.size === 0 && this.parameters.size === 0 && this.#parametersOfPaths.size === 0;
  }

  /** Adds all of another. */
  include(other: CredentialNames): void {
    for (const name of other.headers) this.headers.add(name);
    for (const name of other.parameters) this.parameters.add(name);
    for (const [path, parameters] of other.#parametersOfPaths) this.#parametersOfPaths.set(path, parameters);
  }

  add(location: CredentialLocation): void {
    if ("header" in location) this.headers.add(location.header.name);
    else if ("queryParameter" in location) this.parameters.add(location.queryParameter.name);
  }

  /** Parameters that are secrets on one path alone: elsewhere their names mean something else. */
  addAt(path: string, parameters: readonly string[]): void {
    this.#parametersOfPaths.set(path, new Set(parameters));
  }

  /** Names of the parameters, decoded, that are secrets in requests for `path`. */
  parametersAt(path: string): ReadonlySet<string> {
    const more = this.#parametersOfPaths.size === 0 ? undefined : this.#parametersOfPaths.get(path);
    return more === undefined ? this.parameters : new Set([...this.parameters, ...more]);
  }
}

/** The places that one policy reads credentials from or puts them in, collected while it is prepared. */
export class CredentialPlaces {
  readonly #locations: CredentialLocation[] = [];

  add(location: CredentialLocation): void {
    this.#locations.push(location);
  }

  /** Makes them known to a configuration. */
  addTo(names: CredentialNames): void {
    for (const location of this.#locations) names.add(location);
  }
}

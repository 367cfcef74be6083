import { SensitiveNames, SensitiveParameters } from "../../base/sensitive-names.ts";
import type { CredentialLocation } from "../schema/location.ts";

/**
 * Headers and query parameters of one configuration that carry credentials, and all whose names suggest it; everything that shows a request
 * redacts them. Cookies are always redacted, so they need no names. Fields that only expressions read are not included.
 */
export class CredentialNames {
  /** Lower-case names. */
  readonly headers = new SensitiveNames();
  /** Decoded names. */
  readonly parameters = new SensitiveParameters();
  // Made when needed: each of thousands of routes may have an object of this class.
  #taken: Set<string> | undefined;
  #parametersOfPaths: Map<string, ReadonlySet<string>> | undefined;

  get empty(): boolean {
    return this.headers.size === 0 && this.parameters.size === 0 && this.#parametersOfPaths === undefined;
  }

  /** The headers that policies take credentials from; shadow policies only read theirs. */
  get taken(): Iterable<string> {
    return this.#taken ?? [];
  }

  /** Adds all of another. */
  include(other: CredentialNames): void {
    for (const name of other.headers) this.headers.add(name);
    for (const name of other.taken) this.#take(name);
    for (const name of other.parameters) this.parameters.add(name);
    for (const [path, parameters] of other.#parametersOfPaths ?? []) this.addAt(path, parameters);
  }

  add(location: CredentialLocation): void {
    if ("header" in location) this.#take(location.header.name);
    this.watch(location);
  }

  #take(header: string): void {
    this.#taken ??= new Set();
    this.#taken.add(header);
  }

  /** The same for a shadow policy, which leaves the credential where it is. */
  watch(location: CredentialLocation): void {
    if ("header" in location) this.headers.add(location.header.name);
    else if ("queryParameter" in location) this.parameters.add(location.queryParameter.name);
  }

  /** Parameters that are secret on one path only, such as `code` of an OIDC callback; elsewhere the name means something else. */
  addAt(path: string, parameters: Iterable<string>): void {
    this.#parametersOfPaths ??= new Map();
    this.#parametersOfPaths.set(path, new Set(parameters));
  }

  /** Names of the parameters, decoded, that are secrets in requests for `path`. */
  parametersAt(path: string): ReadonlySet<string> {
    const more = this.#parametersOfPaths?.get(path);
    return more === undefined ? this.parameters : new SensitiveParameters([...this.parameters, ...more]);
  }

  /** The same for a target, which is a path with or without a query. */
  parametersOf(target: string): ReadonlySet<string> {
    if (this.#parametersOfPaths === undefined) return this.parameters;
    const query = target.indexOf("?");
    return this.parametersAt(query === -1 ? target : target.slice(0, query));
  }
}

/**
 * The locations of one policy, collected while it is prepared. `prepare` has no data plane; when the policy is bound to one, they are
 * added to the names of its configuration.
 */
export class CredentialPlaces {
  readonly #locations: CredentialLocation[] = [];

  add(location: CredentialLocation): void {
    this.#locations.push(location);
  }

  /** Adds the locations to the names of a configuration. */
  addTo(names: CredentialNames): void {
    for (const location of this.#locations) names.add(location);
  }
}

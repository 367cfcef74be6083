/** What a converter makes of a configuration of another program, before it is written in one of our forms. */

/** A place in a file that is converted; line and column from 1. */
export interface Place {
  readonly file: string;
  readonly line: number;
  readonly column: number;
}

/**
 * A part of the input that is not in the result as it was.
 * `error`: it has no equivalent, and requests that depend on it are served differently or not at all. `warning`: close, with the difference
 * that the message names. `note`: nothing is lost.
 */
export interface Finding extends Place {
  readonly severity: "error" | "warning" | "note";
  readonly message: string;
  /** What to do instead. */
  readonly remedy?: string;
}

/**
 * JSON that a schema of the configuration describes. The result is checked as a whole, so it needs no separate types. Texts can be in
 * files (`{file}`) and in Secrets of the route's namespace (`{secretKeyRef: {name, key}}`), whichever the input names; hosts can be names
 * of Services (`name.namespace.svc`). Whoever writes a form turns them into what that form has.
 */
export type Json = Readonly<Record<string, unknown>>;

export interface ConvertedListener {
  /** Unique within the port. */
  readonly name: string;
  readonly at: Place;
  /** `*`: all hosts. */
  readonly hostname: string;
  /** The value of `tls`. */
  readonly tls?: Json;
  /** The Secret with the certificate, in place of `tls`. */
  readonly secret?: { readonly namespace: string; readonly name: string };
}

export interface ConvertedPort {
  readonly name: string;
  readonly port: number;
  /** Absent: every address. */
  readonly addresses?: readonly string[];
  readonly listeners: ConvertedListener[];
}

export interface ConvertedRoute {
  readonly name: string;
  /** Where it comes from, for a comment. */
  readonly from: string;
  readonly at: Place;
  /** Of the object that it comes from; absent: the input has no namespaces. */
  readonly namespace?: string;
  /** The name of what it is a part of. Default: that of its listener. */
  readonly group?: string;
  /** `<port>/<listener>` by their names. */
  readonly listeners: readonly string[];
  /** Absent: those of the listeners. */
  readonly hostnames?: readonly string[];
  readonly matches: readonly Json[];
  readonly policies: Json;
  readonly backends: readonly Json[];
}

export interface Converted {
  readonly ports: readonly ConvertedPort[];
  readonly routes: readonly ConvertedRoute[];
  /** Entries of `backends`. */
  readonly backends: readonly Json[];
  readonly frontendPolicies: Json;
  /** In the order of the input. */
  readonly findings: readonly Finding[];
}

/**
 * The `directResponse` of a route that must not be served as it is: what restricted it, or what its requests should reach, is not
 * converted.
 */
export const NOT_CONVERTED = { status: 501, body: "this path was not converted\n" };

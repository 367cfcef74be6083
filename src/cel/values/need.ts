/** What is not known in a rehearsal, and what would make it known: codes, which each place words for its readers. */

/** Something on which a result depends, but which is not known in a rehearsal. */
export interface Need {
  /** Such as `the body of the request`. */
  readonly what: string;
  /** What would make it known; each place says it in its own words. Absent: nothing would. */
  readonly supply?: Supply;
}

/** What somebody can supply so that something becomes known. */
export type Supply =
  /** The value of a header field, or, without a name, all fields. */
  | { readonly kind: "field"; readonly name?: string }
  /** The value of a query parameter, or, without a name, the query. */
  | { readonly kind: "parameter"; readonly name?: string }
  /** The URL with the secrets that are redacted in it. */
  | { readonly kind: "url" }
  | { readonly kind: "body" }
  /** The client's address. */
  | { readonly kind: "source" }
  /** An assumption with this name; `examples`: values as they are written. */
  | { readonly kind: "assumption"; readonly name: string; readonly examples: readonly string[] }
  /** A request, written or recorded. */
  | { readonly kind: "request" }
  /** A recorded request. */
  | { readonly kind: "record" }
  /** A trace of the request: nothing else has it. */
  | { readonly kind: "trace" }
  /** A field of the configuration that is set before requests arrive, such as `config.recorder.clientAddress`. */
  | { readonly kind: "setting"; readonly field: string };

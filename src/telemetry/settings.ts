/** Chooses the requests to log and their fields. */
export interface LogFields {
  /** CEL over request and response: only requests for which it is true are logged. */
  readonly filter?: string | undefined;
  /** Field name → CEL. Replaces a field of the same name; a field whose expression fails is omitted. */
  readonly add?: Readonly<Record<string, string>> | undefined;
  /** Names of fields to omit. */
  readonly remove?: readonly string[] | undefined;
}

/** What `error` says in access logs: the code and what decided, the code alone, or nothing. */
export type LoggedReasons = "full" | "code" | "off";

/** All or none, a ratio from 0 to 1, or CEL over the request that yields one of these. */
export type Sampling = boolean | number | string;

/** Chooses the requests to sample. */
export interface SamplingRules {
  /** For requests with a valid `traceparent`. Default: all. */
  readonly clientSampling?: Sampling | undefined;
  /** For other requests. Default: none. */
  readonly randomSampling?: Sampling | undefined;
}

/** Which requests leave a record, and what is in it. */
export interface LogFields {
  /** CEL over request and response: only those for which it is true are logged. */
  readonly filter?: string | undefined;
  /** Field name → CEL; a field of the same name is replaced, one whose expression fails is left out. */
  readonly add?: Readonly<Record<string, string>> | undefined;
  /** Names of fields that are left out. */
  readonly remove?: readonly string[] | undefined;
}

/** All or none, a share from 0 to 1, or CEL over the request that gives one of these. */
export type Sampling = boolean | number | string;

/** Which requests leave spans. */
export interface SamplingRules {
  /** Which requests whose client has begun a trace are sampled. Default: all. */
  readonly clientSampling?: Sampling | undefined;
  /** Which of the others. Default: none. */
  readonly randomSampling?: Sampling | undefined;
}

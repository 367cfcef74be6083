/** What the policies of a thread share. */
export interface PolicyEnvironment {
  /** Lower-case names of headers whose values are never shown. */
  readonly hidden: ReadonlySet<string>;
}

/** What every policy is created with besides its own configuration. */
export interface PolicyDeps extends PolicyEnvironment {
  /** Where the policy is attached, with its phase and kind: what survives a reload is kept under this name. */
  readonly identity: string;
}

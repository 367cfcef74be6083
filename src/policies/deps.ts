/** What every policy is created with besides its own configuration. */
export interface PolicyDeps {
  /** Lower-case names of headers whose values are never shown. */
  readonly hidden: ReadonlySet<string>;
}

/** Which configuration is in force, and what became of the newest one: the body of `GET /config/status`. */
export interface ConfigStatus {
  readonly generation: number;
  /** ISO 8601: when the generation came into force in every worker; null before the first. */
  readonly appliedAt: string | null;
  /** ISO 8601: when its source was last read. */
  readonly loadedAt: string | null;
  /** Why the newest configuration was refused; null when it is in force. */
  readonly lastError: ConfigError | null;
  readonly synchronized: boolean;
  /** Path of the file, `standard input` or address of the controller. */
  readonly source: string;
}

export interface ConfigError {
  /** ISO 8601 */
  readonly at: string;
  readonly message: string;
  /** Each problem with file, line, column, path and hint, as the configuration loader reports it. */
  readonly diagnostics: readonly unknown[];
}

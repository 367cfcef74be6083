/** Which configuration is in force, and what became of the newest one: the body of `GET /config/status`. */
export interface ConfigStatus {
  readonly generation: number;
  /** ISO 8601: when the generation came into force in every worker; null before the first. */
  readonly appliedAt: string | null;
  /** ISO 8601: when its source was last read. */
  readonly loadedAt: string | null;
  /** SHA-256, in hex, of the text in force followed by the content of each file that it names; null before the first. */
  readonly hash: string | null;
  /** Whether anything else than what is in force is in those files now; also when one is missing or cannot be read. */
  readonly diskDiffers: boolean;
  /** Why the newest configuration was refused; null when it is in force. */
  readonly lastError: ConfigError | null;
  /** ISO 8601: when what was refused is tried again without a change; null: it is not, or nothing was refused. */
  readonly nextRetryAt: string | null;
  /** The newest configuration is in force, and it is what is on disk. */
  readonly synchronized: boolean;
  /** Fields whose new values only a restart puts in force, such as `config.adminAddr`. */
  readonly restartRequired: readonly string[];
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

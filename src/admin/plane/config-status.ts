import type { Diagnostic } from "../../translation/problems/diagnostics.ts";
import type { MissingDocument } from "../../translation/resources/store.ts";
import type { CertificateView } from "./certificates.ts";

/** The body of `GET /config/status`: the configuration in effect, and what became of the newest one. */
export interface ConfigStatus {
  readonly generation: number;
  /** ISO 8601: when the generation took effect in every worker; null before the first. */
  readonly appliedAt: string | null;
  /** ISO 8601: when its source was last read. */
  readonly loadedAt: string | null;
  /**
   * SHA-256, in hex, of the text in effect followed by the content of each file that it names; with a controller, its version of
   * the state. null before the first.
   */
  readonly hash: string | null;
  /** Whether those files differ from what is in effect now; also true if one is missing or unreadable. */
  readonly diskDiffers: boolean;
  /** Why the newest configuration was rejected; null when it is in effect. */
  readonly lastError: ConfigError | null;
  /** ISO 8601: when the rejected configuration is retried without a change; null: it is not, or none was rejected. */
  readonly nextRetryAt: string | null;
  /** The newest configuration is in effect, and the files on disk have not changed since. */
  readonly synchronized: boolean;
  /** Changed fields that take effect only after a restart, such as `config.adminAddr`. */
  readonly restartRequired: readonly string[];
  /** What is valid in the configuration in effect and most likely not intended; absent with a controller, which reports it in statuses. */
  readonly warnings?: ConfigWarnings;
  /** Documents behind URLs of the configuration whose last fetch failed; absent with a controller, which fetches them itself. */
  readonly missingDocuments?: readonly MissingDocument[];
  /**
   * Certificates by ACME that are not there yet, or whose last order failed; absent if the gateway orders none, or with a controller. `/certificates` has
   * all of them.
   */
  readonly pendingCertificates?: PendingCertificates;
  /** Path of the file, `standard input` or address of the controller. */
  readonly source: string;
  /** The stream of the controller; absent: the configuration comes from a file. */
  readonly stream?: StreamStatus;
}

export interface PendingCertificates {
  readonly count: number;
  /** The first of them, by their names. */
  readonly first: readonly (Pick<CertificateView, "state" | "next" | "lastError"> & { readonly name: string })[];
}

export interface ConfigWarnings {
  readonly count: number;
  /** The first of them, by their place. */
  readonly first: readonly ConfigWarning[];
}

type ConfigWarning = Pick<Diagnostic, "file" | "line" | "column" | "path" | "message" | "remedy" | "lint">;

interface StreamStatus {
  readonly connected: boolean;
  /** Why there is no connection; null: there is one, or none has failed yet. */
  readonly problem: string | null;
  /** Version of the newest complete state that has arrived; `hash` is that of the one in effect. */
  readonly version: string | null;
  /** Gateways of a shared proxy that keep what they had before, because what is new for them cannot be applied; the others have theirs. Absent: none. */
  readonly heldBack?: readonly { readonly gateway: string; readonly reason: string }[];
}

export interface ConfigError {
  /** ISO 8601 */
  readonly at: string;
  readonly message: string;
  /** Each problem with file, line, column, path and hint, as the configuration loader reports it. */
  readonly diagnostics: readonly unknown[];
}

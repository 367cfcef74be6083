import type { ConfigDifference } from "../admin/plane/config-difference.ts";
import type { ConfigStatus } from "../admin/plane/config-status.ts";
import type { Locate } from "../base/origin.ts";
import type { Impact } from "../impact/impact.ts";
import type { PackedIr } from "../ir/packed-ir.ts";
import type { Diagnostic } from "../translation/problems/diagnostics.ts";

/** Keeps the configuration in effect equal to its source: a file, or the stream of a controller. */
export interface Follower {
  readonly status: ConfigStatus;
  /** Where a field of the configuration in effect is written in its file; undefined if that is not known any more, and for objects of a controller. */
  readonly locate: Locate;
  /** How the source differs from what is in effect, without secrets; `secret`: names of header fields and parameters. */
  difference(secret: ReadonlySet<string>): Promise<ConfigDifference>;
  /** Starts following. Rejects if the first configuration is available and cannot be applied. */
  begin(): Promise<void>;
  /** Applies the newest configuration, changed or not. */
  reload(): Promise<unknown>;
  /** A request needs a newer version of a document behind a URL of the configuration. */
  documentWanted(url: string): void;
  /** A configuration that the controller would send; undefined: there is no controller. Rejects if it does not keep this preview. */
  preview(id: string): Promise<PackedIr> | undefined;
  close(): void;
}

/** Applies configurations; the gateway. */
export interface Host {
  /** Applies it in every worker, or in none and rejects. */
  apply(generation: number, configuration: PackedIr): Promise<void>;
  /** What it would do to sampled requests in place of the one in effect. */
  impactOf(configuration: PackedIr): Promise<Impact>;
  /** Called when it is in effect. */
  applied(configuration: PackedIr, warnings: readonly Diagnostic[]): void;
  /** Called after each attempt, when the follower's status says how it ended. */
  attempted(): void;
}

/** Pause before a rejected configuration is tried again; it doubles each time. */
const FIRST_PAUSE_MS = 1000;
const LONGEST_PAUSE_MS = 30_000;
/** Repeats for a configuration that kills workers, which harms traffic; after them it waits for a change. */
export const DEADLY_REPEATS = 3;

/** Milliseconds: 1 s, 2 s, 4 s, up to 30 s. */
export function pauseBefore(attempt: number): number {
  return Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(attempt - 1, 10));
}

import type { LogFormat } from "../base/log.ts";
import type { NcsaFormat } from "./ncsa-line.ts";

/** Chooses the requests to log and their fields. */
export interface LogFields {
  /** CEL over request and response: only requests for which it is true are logged. */
  readonly filter?: string | undefined;
  /** Field name → CEL. Replaces a field of the same name; a field whose expression fails is omitted. */
  readonly add?: Readonly<Record<string, string>> | undefined;
  /** Names of fields to omit. */
  readonly remove?: readonly string[] | undefined;
}

/** How lines of the access log are written. */
export type AccessFormat = LogFormat | NcsaFormat;

/** `config.logging.output`. */
export interface LogFileSettings {
  /** Absolute. */
  readonly file: string;
  /** The file is opened again when its path is another one's. */
  readonly reopen: boolean;
  /** Bytes; undefined: the file is not rotated. */
  readonly maxSize: number | undefined;
  /** Files that rotation leaves: `file.1`, the newest, to `file.<keep>`. */
  readonly keep: number;
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

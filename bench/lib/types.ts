/** The terms of the bench: a peer is a proxy that can be started, a row is one experiment, a measure is one line of the table. */
import type { Cores } from "./cores.ts";
import type { Child } from "./proc.ts";

/** What every row gets. */
export interface Bench {
  readonly rounds: number;
  /** Length of one round of load. */
  readonly seconds: number;
  readonly cores: Cores;
  /** For configuration, logs and bodies; removed at the end. */
  readonly folder: string;
  /** Prints progress, and why something is left out. */
  note(text: string): void;
}

/**
 * What a proxy speaks with its clients and its origin: `http` HTTP/1.1 with both; `h2` HTTP/2 with clients (without TLS by prior
 * knowledge) and HTTP/1.1 with the origin; `grpc` HTTP/2 with both; `tcp` passes bytes on.
 */
export type Protocol = "http" | "h2" | "grpc" | "tcp";

export interface ProxyOptions {
  readonly originPort: number;
  readonly cpus: string | undefined;
  readonly accessLog: boolean;
  /** The certificate to show clients; absent = plaintext. */
  readonly tls?: CertificateFiles;
  /** Default: `http`. */
  readonly protocol?: Protocol;
}

/** Paths of PEM files. */
export interface CertificateFiles {
  readonly cert: string;
  readonly key: string;
}

export interface RunningProxy {
  readonly name: string;
  readonly port: number;
  readonly child: Child;
}

export interface Peer {
  readonly name: string;
  /** How to install it. */
  readonly hint: string;
  /** The program to start, or undefined when it is not installed. */
  find(): string | undefined;
  /** Starts it with one worker that forwards everything to the origin, and waits until it accepts connections. */
  start(bench: Bench, program: string, options: ProxyOptions): Promise<RunningProxy>;
}

/** Target values: the project promises "must" and strives for "aim". */
export interface Limits {
  readonly better: "less" | "more";
  readonly must: number;
  readonly aim: number;
}

export interface Measure {
  readonly measure: string;
  readonly tracegate: string;
  readonly peers: string;
  /** The value that the limits apply to, e.g. a ratio, milliseconds or MiB; absent = information only, NaN = one side is not installed. */
  readonly value?: number;
  readonly unit?: "ms" | "MiB";
  readonly limits?: Limits;
  /** Replaces the verdict where this machine cannot give one. */
  readonly verdict?: string;
}

export interface RowResult {
  readonly measures: readonly Measure[];
  /** Every sample, for the JSON file. */
  readonly samples: unknown;
}

export interface Row {
  readonly name: string;
  readonly title: string;
  run(bench: Bench): Promise<RowResult>;
}

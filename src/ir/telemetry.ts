import type { CalledService } from "./policies.ts";

/** `frontendPolicies.accessLog` (reference 1.10, 3.29). */
export interface AccessLog extends LogFields {
  /** Records of the same requests for a collector. Absent: the log only. */
  readonly otlp?: { readonly collector: Collector } & LogFields;
}

/** Which requests leave a record, and what is in it. */
export interface LogFields {
  /** CEL over request and response: only those for which it is true are logged. */
  readonly filter?: string;
  /** Field name → CEL; a field of the same name is replaced, one whose expression fails is left out. */
  readonly add?: Readonly<Record<string, string>>;
  /** Names of fields that are left out. */
  readonly remove?: readonly string[];
}

/** `frontendPolicies.tracing` (reference 1.10, 3.30). */
export interface Tracing {
  readonly collector: Collector;
  /** Attribute name → CEL over request and response; `span.name` is the name of the span. */
  readonly attributes: Readonly<Record<string, string>>;
  /** Names of attributes that are left out. */
  readonly remove: readonly string[];
  /** CEL over request and response: only spans of requests for which it is true are exported. */
  readonly filter?: string;
  /** Which requests whose client has begun a trace are sampled. Default: all. */
  readonly clientSampling?: Sampling;
  /** Which of the others. Default: none. */
  readonly randomSampling?: Sampling;
}

/** All or none, a share from 0 to 1, or CEL over the request that gives one of these. */
export type Sampling = boolean | number | string;

/** A service that takes telemetry by OTLP. */
export interface Collector extends CalledService {
  readonly protocol: "grpc" | "http";
  /** Of HTTP requests. */
  readonly path: string;
  /** Milliseconds for one export. */
  readonly timeout: number;
  /** Attributes of the resource, which everything exported there is from: name → CEL over `env`. */
  readonly resources: Readonly<Record<string, string>>;
}

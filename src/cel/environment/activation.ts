/** What one evaluation reads: the request, response and connection as expressions see them. */
import type { Names } from "../../base/sensitive-names.ts";
import type { Budget } from "../values/budget.ts";
import type { EvaluationObserver, Unknowns } from "./observer.ts";

/**
 * A request as expressions read it: its head, and its body if a policy has buffered it. Requests of every protocol engine have
 * these fields, so the proxy passes its own objects, or small views with lazy getters.
 */
export interface RequestParts {
  readonly method: string;
  readonly scheme: string;
  readonly authority: string;
  readonly path: string;
  /** The query with its question mark, or empty. */
  readonly search: string;
  /** As in `HTTP/1.1`. */
  readonly version: string;
  /** Alternating names and values: names in lower case, values as latin1 text, one character per byte. Without `host`. */
  readonly headers: readonly string[];
  /** Lower-case names of the fields that `redacted()` hides. Default: those that are secret everywhere. */
  readonly sensitive?: Names | undefined;
  /** Absent unless the body was buffered, and when it was too long for the buffer. */
  readonly body?: Uint8Array | undefined;
  /** The part of the body that has arrived. Default: the body. */
  readonly bodyPrefix?: Uint8Array | undefined;
  readonly startTime?: Date | undefined;
  readonly endTime?: Date | undefined;
}

/** A response: its head, and its body if a policy has buffered it. */
export interface ResponseParts {
  readonly status: number;
  /** In the form of those of a request. */
  readonly headers: readonly string[];
  /** Lower-case names of the fields that `redacted()` hides. Default: those that are secret everywhere. */
  readonly sensitive?: Names | undefined;
  readonly body?: Uint8Array | undefined;
  readonly bodyPrefix?: Uint8Array | undefined;
  readonly grpcStatus?: number | undefined;
}

/** The client's side of a connection. Addresses are without port; `raw` ones are those of the socket, behind a PROXY header. */
export interface SourceParts {
  readonly address: string;
  readonly port: number;
  readonly rawAddress: string;
  readonly rawPort: number;
  readonly identity?: unknown;
  readonly spiffeId?: string | undefined;
  readonly subjectAltNames?: readonly string[] | undefined;
  readonly issuer?: string | undefined;
  readonly subject?: string | undefined;
  readonly subjectCn?: string | undefined;
  readonly certificate?: unknown;
  readonly unverifiedWorkload?: unknown;
  /** The head of the CONNECT request that opened the tunnel in which the client speaks; absent without a tunnel. */
  readonly connectHeaders?: Pick<RequestParts, "authority" | "headers" | "sensitive"> | undefined;
}

/** What each field of `source` is known from. Only those of the address are always there. */
export const SOURCE_FIELDS: Readonly<Record<keyof SourceParts, "address" | "workload" | "certificate" | "tunnel">> = {
  address: "address",
  port: "address",
  rawAddress: "address",
  rawPort: "address",
  unverifiedWorkload: "workload",
  identity: "certificate",
  spiffeId: "certificate",
  subjectAltNames: "certificate",
  issuer: "certificate",
  subject: "certificate",
  subjectCn: "certificate",
  certificate: "certificate",
  connectHeaders: "tunnel",
};

/** The gateway's side of a connection. */
interface DestinationParts {
  readonly address: string;
  readonly port: number;
  /** SNI of the TLS handshake (RFC 6066, section 3). */
  readonly hostname?: string | undefined;
}

/** How a recorded request ended. A text is empty if the request has no such value. */
export interface RecordParts {
  readonly route: string;
  readonly listener: string;
  readonly endpoint: string;
  /** Code of the error with which the gateway responded. */
  readonly error: string;
  readonly reason: string;
  /** The kind of the policy that ended it. */
  readonly policy: string;
  /** Milliseconds. */
  readonly duration: number;
  readonly attempts: number;
}

/** Variables that policies set, whose fields may be absent. */
export const FINDINGS = ["jwt", "apiKey", "basicAuth", "extauthz", "extproc", "metadata"] as const;

export type Findings = { readonly [Name in (typeof FINDINGS)[number]]?: unknown };

/**
 * What one evaluation can read. An absent variable is null, and `has()` of its fields is false.
 * The `unknown` ones are plain data as JSON has it: objects, arrays, strings, numbers (without a fraction they become ints,
 * else doubles), booleans, null; besides, Date becomes a timestamp, bigint an int, Uint8Array bytes. Only own properties can be read.
 */
export interface Activation extends Findings {
  /** Set for requests that are traced. */
  readonly observer?: EvaluationObserver | undefined;
  /** Set for requests that are rehearsed, beside `observer`. */
  readonly unknowns?: Unknowns | undefined;
  /** Shared by all evaluations for one request; without it, each evaluation has a budget of its own. */
  readonly budget?: Budget | undefined;
  readonly request?: RequestParts | undefined;
  readonly response?: ResponseParts | undefined;
  readonly source?: SourceParts | undefined;
  readonly destination?: DestinationParts | undefined;
  /** What the recorder knows about a finished request. */
  readonly record?: RecordParts | undefined;
  readonly proxy?: unknown;
  readonly env?: unknown;
  readonly backend?: unknown;
}

/**
 * `base` with other values for some properties. Those of `base` are computed when they are read, with `base` itself as receiver, because its
 * getters use private fields; copying would compute all of them.
 */
export function overlaid<Parts extends object>(base: Parts, own: Partial<Parts>): Parts {
  return new Proxy(base, {
    get: (parts, name) => (Object.hasOwn(own, name) ? Reflect.get(own, name) : Reflect.get(parts, name, parts)),
  });
}

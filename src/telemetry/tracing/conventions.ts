/** What spans say of requests and calls, and the conventions that give it names. */
import type { RedactedTarget } from "../../base/redaction.ts";
import type { AccessRecord } from "../access-record.ts";
import type { Attributes, Span } from "../otlp/entries.ts";

/** A request as it arrived, before policies changed it. */
export interface Arrived {
  readonly method: string;
  readonly scheme: "http" | "https";
  /** `host[:port]` */
  readonly authority: string;
  readonly userAgent: string | undefined;
  /** `remote`: of the client, behind proxies that the gateway trusts; `raw`: of the connection. */
  readonly client: {
    readonly remoteAddress: string;
    readonly remotePort: number;
    readonly rawAddress: string;
    readonly rawPort: number;
  };
}

/** A request that is over. */
export interface ServerFacts {
  readonly arrived: Arrived;
  readonly record: AccessRecord;
  /** The path of the match that was chosen, such as `/shop/*`; undefined if none was. */
  readonly route: string | undefined;
  readonly grpc: boolean;
  /** Of the flight recorder, `<worker>-<number>`; undefined if it is off. */
  readonly recordId: string | undefined;
  /** What has ended the request: the part of the configuration, or else the policy; undefined if the backend has. */
  readonly decidedBy: string | undefined;
}

/** The connection of a call. */
export interface CallConnection {
  /** Of the other end, which may be a proxy on the way; undefined for a socket file. */
  readonly peer: { readonly address: string; readonly port: number } | undefined;
  /** Of HTTP. */
  readonly version: "1.1" | "2";
}

/** A call of the gateway, for a request. */
export interface CallFacts {
  readonly kind: "Primary" | "Policy" | "Mirror";
  readonly subtype: string;
  /** `host:port` or `unix:path` */
  readonly target: string;
  /** Of attempts to call the backend. */
  readonly request?: {
    readonly method: string;
    readonly scheme: "http" | "https";
    readonly authority: string;
    /** Without query. */
    readonly path: RedactedTarget;
    readonly grpc: boolean;
    /** 0 for the first attempt. */
    readonly retry: number;
  };
  /** Of attempts; undefined = there was none yet. */
  readonly connection?: CallConnection | undefined;
  /** Of the response; undefined = none came. */
  readonly status: number | undefined;
  readonly grpcStatus: number | undefined;
  /** Why there is no response. */
  readonly error: string | undefined;
  /** The class of the error: one of few texts, such as an error code. */
  readonly code: string | undefined;
}

/** What a convention says of a span. */
type SpanText = Pick<Span, "name" | "attributes" | "error">;

/** Names and values of attributes, names of spans, and the rules for their status. */
export interface Conventions {
  server(facts: ServerFacts): SpanText;
  client(facts: CallFacts): SpanText;
}

/** Attributes of requests that no convention has a name for. */
export function requestAttributes({ recordId, decidedBy }: ServerFacts): Attributes {
  return { "tracegate.record.id": recordId, "tracegate.decided_by": decidedBy };
}

/** Attributes of calls that no convention has a name for. */
export function outboundAttributes({ kind, subtype }: CallFacts): Attributes {
  return { "tracegate.outbound.kind": kind, "tracegate.outbound.subtype": subtype };
}

import type { HeaderList } from "../../http/message/message.ts";
import { SingleEndpoint } from "../balancers/balancer.ts";
import type { OnCancel } from "../connections/upstream.ts";
import { Endpoint } from "../endpoints/endpoint.ts";
import { Pool } from "../pools/pool.ts";
import type { Resolver } from "../resolve/resolver.ts";
import type { PoolTarget } from "../settings/pool-target.ts";
import { type CalloutResponse, callUpstream, NEEDS_BODY } from "./http-call.ts";

/** One request to a URL. */
interface FetchRequest {
  readonly method: "GET" | "POST";
  /** Without Host, Content-Length and hop-by-hop fields. */
  readonly headers: HeaderList;
  readonly body?: Uint8Array;
  /** Milliseconds for the whole call. */
  readonly timeoutMs: number;
  /** Limit of the response's body in bytes; a longer one is an error. */
  readonly maxBytes: number;
  /** CAs of an `https:` server, PEM. Absent: those of the runtime. */
  readonly root?: string;
}

/**
 * Sends a request to an absolute `http:` or `https:` URL, and reads the whole response. Redirects are not followed. Rejects like
 * `callUpstream`, and with an Error for other URLs. Replaces the global `fetch`, whose connections bypass the egress check.
 */
export type Fetch = (url: string, request: FetchRequest, onCancel?: OnCancel) => Promise<CalloutResponse>;

/** For requests so rare that each opens its own connection. `resolver` decides which addresses are allowed. */
export function fetchThrough(resolver: Resolver): Fetch {
  return async (url, request, onCancel = () => {}) => {
    const { target, authority, path } = partsOf(new URL(url), request.root);
    const settings = { connectTimeout: request.timeoutMs, idleTimeout: 0, maxIdle: 0, keepAliveDelay: 0 };
    const pool = new Pool(target, settings, resolver, { onConnected() {} });
    try {
      const endpoint = new Endpoint(authority, pool, 1);
      const { body = new Uint8Array(), root: _used, ...others } = request;
      return await callUpstream(
        new SingleEndpoint(endpoint),
        { ...others, authority, path, body, headDecides: NEEDS_BODY },
        onCancel,
      );
    } finally {
      pool.close();
    }
  };
}

function partsOf(
  { protocol, hostname, port, host, pathname, search, username, password }: URL,
  root: string | undefined,
): {
  readonly target: PoolTarget;
  readonly authority: string;
  readonly path: string;
} {
  if (protocol !== "http:" && protocol !== "https:")
    throw new Error(`its scheme is ${protocol} instead of http or https`);
  if (username !== "" || password !== "")
    throw new Error("its URL has a user name or password, which would not be sent");
  const secure = protocol === "https:";
  const target = {
    host: hostname.replace(/^\[|\]$/g, ""),
    port: Number(port || (secure ? 443 : 80)),
    version: "HTTP/1.1",
    ...(secure && { tls: { root, insecure: false, insecureHost: false } }),
  } as const;
  return { target, authority: host, path: pathname + search };
}

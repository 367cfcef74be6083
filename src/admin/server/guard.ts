import type { IncomingMessage } from "node:http";
import { BlockList, isIP } from "node:net";
import type { ListenAddress } from "../../base/listen-address.ts";
import { type PlainReply, textReply } from "./reply.ts";

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet("127.0.0.0", 8);
LOOPBACK.addAddress("::1", "ipv6");

/** Origins of web UIs under development, which may read responses. */
const CORS_ORIGINS = new Set(["http://localhost:3000", "http://localhost:19000"]);

/**
 * Rejects requests that a malicious web page makes a browser send: for another host name (DNS rebinding), from another site's
 * page (cross-site request forgery), or embedded in one.
 */
export class Guard {
  readonly #anyHost: boolean;
  readonly #anyAddress: boolean;
  readonly #names: ReadonlySet<string>;

  /** @param allowedHosts host names, besides localhost, that clients may use for the server */
  constructor(address: ListenAddress, allowedHosts: readonly string[]) {
    // Web pages cannot reach a unix socket, and its clients send arbitrary host names.
    this.#anyHost = address.type === "unix";
    this.#anyAddress = address.type === "socket" && !isLoopback(address.host);
    this.#names = new Set(["localhost", ...allowedHosts.map((name) => name.toLowerCase())]);
  }

  /** The response to a request that must be rejected, otherwise undefined. */
  check(request: IncomingMessage): PlainReply | undefined {
    return this.#checkHost(request) ?? checkOrigin(request) ?? checkFetchSite(request);
  }

  #checkHost(request: IncomingMessage): PlainReply | undefined {
    const fields = request.headersDistinct.host ?? [];
    const [host = ""] = fields;
    if (fields.length !== 1) return textReply(400, "exactly one Host header is required\n");
    if (this.#anyHost || this.#allows(hostname(host))) return undefined;
    return textReply(
      403,
      `host ${JSON.stringify(host)} is not served here: call the admin server by localhost, 127.0.0.1 or [::1]\n`,
    );
  }

  /** DNS cannot rebind an IP literal, so any is allowed if the server listens on more than loopback. */
  #allows(host: string | undefined): boolean {
    if (host === undefined) return false;
    return isIP(host) === 0 ? this.#names.has(host) : this.#anyAddress || isLoopback(host);
  }
}

/** CORS headers that let a page of an allowed origin read the response; none for other clients. */
export function corsHeaders(request: IncomingMessage): Readonly<Record<string, string>> {
  const { origin } = request.headers;
  if (origin === undefined || !CORS_ORIGINS.has(origin)) return {};
  return {
    "access-control-allow-origin": origin,
    "access-control-allow-methods": "GET, POST",
    "access-control-allow-headers": "content-type",
    vary: "Origin",
  };
}

/** The response to a page's request that would change something; undefined for clients that are no pages. */
export function refuseChange(request: IncomingMessage): PlainReply | undefined {
  const { origin } = request.headers;
  if (origin === undefined) return undefined;
  return textReply(403, "web pages may only read here; use tgctl, or a client that sends no Origin header\n");
}

function checkOrigin(request: IncomingMessage): PlainReply | undefined {
  const { origin, host: own = "" } = request.headers;
  if (origin === undefined) return undefined;
  const url = URL.parse(origin);
  const isWeb = url?.protocol === "http:" || url?.protocol === "https:";
  const host = isWeb ? hostname(url.host) : undefined;
  // The server's own page, by a name that #checkHost has allowed, also behind a route with `internal`.
  if (isWeb && url.host === own.toLowerCase()) return undefined;
  if (host !== undefined && (host === "localhost" || isLoopback(host))) return undefined;
  return textReply(403, `origin ${JSON.stringify(origin)} is not allowed: only pages of this machine may call\n`);
}

/** Requests for images and scripts carry no Origin, but browsers set Sec-Fetch-Site. Following a link is allowed. */
function checkFetchSite(request: IncomingMessage): PlainReply | undefined {
  if (request.headers["sec-fetch-site"] !== "cross-site" || request.headers["sec-fetch-mode"] === "navigate")
    return undefined;
  return textReply(403, "pages of other sites may not embed the admin server\n");
}

/** The lower-case host of `host[:port]` without brackets; undefined when it is malformed. */
function hostname(authority: string): string | undefined {
  const match = /^(?:\[([0-9a-f:.]+)\]|([a-z0-9._-]+))(?::\d{1,5})?$/i.exec(authority);
  return (match?.[1] ?? match?.[2])?.toLowerCase();
}

function isLoopback(host: string): boolean {
  const family = isIP(host);
  return family !== 0 && LOOPBACK.check(host, family === 6 ? "ipv6" : "ipv4");
}

import type { IncomingMessage } from "node:http";
import { BlockList, isIP } from "node:net";
import type { ListenAddress } from "../../base/listen-address.ts";
import { type PlainReply, textReply } from "./reply.ts";

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet("127.0.0.0", 8);
LOOPBACK.addAddress("::1", "ipv6");

/** Where web user interfaces under development run: pages of these origins may read the answers. */
const CORS_ORIGINS = new Set(["http://localhost:3000", "http://localhost:19000"]);

/**
 * Refuses what only a browser that was tricked would send: a request for another host name (DNS rebinding), from another
 * site's page (cross-site request forgery), or embedded in one.
 */
export class Guard {
  readonly #anyHost: boolean;
  readonly #anyAddress: boolean;
  readonly #names: ReadonlySet<string>;

  /** @param allowedHosts host names, besides localhost, by which the server may be called */
  constructor(address: ListenAddress, allowedHosts: readonly string[]) {
    // A page cannot reach a unix socket, and its callers write any name.
    this.#anyHost = address.type === "unix";
    this.#anyAddress = address.type === "socket" && !isLoopback(address.host);
    this.#names = new Set(["localhost", ...allowedHosts.map((name) => name.toLowerCase())]);
  }

  /** The answer to a request that must not pass, else undefined. */
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

  /** An IP literal cannot be rebound by DNS, so any is good where the server is meant to be reached from elsewhere. */
  #allows(host: string | undefined): boolean {
    if (host === undefined) return false;
    return isIP(host) === 0 ? this.#names.has(host) : this.#anyAddress || isLoopback(host);
  }
}

/** The headers by which a page of this origin may read the answer; none for other callers. */
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

function checkOrigin(request: IncomingMessage): PlainReply | undefined {
  const { origin } = request.headers;
  if (origin === undefined) return undefined;
  const url = URL.parse(origin);
  const host = url === null ? undefined : hostname(url.host);
  if (url?.protocol.startsWith("http") && host !== undefined && (host === "localhost" || isLoopback(host)))
    return undefined;
  return textReply(403, `origin ${JSON.stringify(origin)} is not allowed: only pages of this machine may call\n`);
}

/** Images and scripts of other sites' pages carry no Origin, but browsers mark them; following a link is fine. */
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

import { createHmac, randomBytes } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { BlockList, isIP } from "node:net";
import type { ListenAddress } from "../../base/listen-address.ts";
import { sameSecret } from "../../base/same-secret.ts";
import { PAGE_TOKEN_HEADER } from "../plane/answers.ts";
import { type PlainReply, textReply } from "./reply.ts";

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet("127.0.0.0", 8);
LOOPBACK.addAddress("::1", "ipv6");

/**
 * Rejects requests that a malicious web page makes a browser send: for another host name (DNS rebinding), from another site's
 * page (cross-site request forgery), or embedded in one.
 */
export class Guard {
  readonly #anyHost: boolean;
  readonly #anyAddress: boolean;
  readonly #names: ReadonlySet<string>;
  readonly #browserOrigins: ReadonlySet<string>;
  /** Makes the tokens of pages; new with each start. */
  readonly #key = randomBytes(32);

  /**
   * @param allowedHosts host names, besides localhost, that clients may use for the server
   * @param browserOrigins origins of pages that may read responses, besides the server's own
   */
  constructor(address: ListenAddress, allowedHosts: readonly string[] = [], browserOrigins: readonly string[] = []) {
    this.#browserOrigins = new Set(browserOrigins);
    // Web pages cannot reach a unix socket, and its clients send arbitrary host names.
    this.#anyHost = address.type === "unix";
    this.#anyAddress = address.type === "socket" && !isLoopback(address.host);
    this.#names = new Set(["localhost", ...allowedHosts.map((name) => name.toLowerCase())]);
  }

  /** The response to a request that must be rejected, otherwise undefined. */
  check(request: IncomingMessage): PlainReply | undefined {
    return this.#checkHost(request) ?? this.#checkOrigin(request) ?? this.#checkFetchSite(request);
  }

  /**
   * What this server's own page must show to change something. Only that page can read it: other origins, those with CORS included, get undefined,
   * as do clients that are no pages.
   */
  pageToken(request: IncomingMessage): string | undefined {
    const { origin } = request.headers;
    if (origin === undefined || !isOwn(origin, request)) return undefined;
    return createHmac("sha256", this.#key).update(origin).digest("base64url");
  }

  /** The response to a page's request that would change something; undefined for clients that are no pages, and for this server's own page. */
  refuseChange(request: IncomingMessage): PlainReply | undefined {
    if (request.headers.origin === undefined) return undefined;
    const token = this.pageToken(request);
    if (token === undefined)
      return textReply(
        403,
        "pages of other origins may only read here; use tgctl, or a client that sends no Origin header\n",
      );
    const shown = request.headers[PAGE_TOKEN_HEADER];
    if (typeof shown === "string" && sameSecret(shown, token)) return undefined;
    return textReply(
      403,
      `a page changes something only with its token in ${PAGE_TOKEN_HEADER}, which POST /page-token returns\n`,
    );
  }

  /** CORS headers that let a page of an admitted origin read the response; none for other clients. */
  corsHeaders({ headers: { origin } }: IncomingMessage): Readonly<Record<string, string>> {
    if (origin === undefined || !this.#browserOrigins.has(origin)) return {};
    return {
      "access-control-allow-origin": origin,
      "access-control-allow-methods": "GET, POST",
      "access-control-allow-headers": "content-type",
      vary: "Origin",
    };
  }

  #checkOrigin(request: IncomingMessage): PlainReply | undefined {
    const { origin } = request.headers;
    if (origin === undefined || isOwn(origin, request) || this.#browserOrigins.has(origin)) return undefined;
    const host = hostname(webUrl(origin)?.host ?? "");
    if (host !== undefined && (host === "localhost" || isLoopback(host))) return undefined;
    return textReply(403, `origin ${JSON.stringify(origin)} is not allowed: only pages of this machine may call\n`);
  }

  /** Requests for images and scripts carry no Origin, but browsers set Sec-Fetch-Site. Following a link is allowed. */
  #checkFetchSite({ headers }: IncomingMessage): PlainReply | undefined {
    const { origin = "" } = headers;
    if (headers["sec-fetch-site"] !== "cross-site" || headers["sec-fetch-mode"] === "navigate") return undefined;
    if (this.#browserOrigins.has(origin)) return undefined;
    return textReply(403, "pages of other sites may not embed the admin server\n");
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

/** Whether a page comes from this server, by a name that `Guard` has allowed, also behind a route with `internal`. */
function isOwn(origin: string, { headers: { host = "" } }: IncomingMessage): boolean {
  const url = webUrl(origin);
  return url !== undefined && url.host === host.toLowerCase();
}

function webUrl(origin: string): URL | undefined {
  const url = URL.parse(origin);
  return url?.protocol === "http:" || url?.protocol === "https:" ? url : undefined;
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

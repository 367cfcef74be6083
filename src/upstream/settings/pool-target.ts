import { isIP } from "node:net";
import { tlsIdentity } from "../../tls/tls-client.ts";
import type { BackendTls } from "../../tls/tls-settings.ts";
import type { DnsSettings } from "../discovery/dns.ts";
import type { BackendTcp, HttpVersion } from "./settings.ts";

/** A name or an IP address. */
export interface HostAddress {
  readonly host: string;
  readonly port: number;
  /** `host` is an IP address of a workload, so `denyNetworks` does not apply to it (net/egress.ts). */
  readonly discovered?: true;
  /** Of a name: how it is looked up. */
  readonly dns?: DnsSettings | undefined;
  /** SRV records that give the hosts and ports; `host` is their domain, and `port` 0. */
  readonly srv?: string;
  /** Addresses of the name `host`, which are the only ones to connect to; TLS and requests have the name. */
  readonly at?: readonly string[];
}

export type Address = HostAddress | { readonly path: string };

/** Limits of what is asked of one endpoint at a time, by all workers together. */
export interface PoolLimits {
  /** Connections, idle ones included: each worker has a part. Default 10000 for each worker. */
  readonly maxConnections?: number | undefined;
  /** Requests that wait for one of them; further ones fail. Default 4096 for each worker. */
  readonly maxPendingRequests?: number | undefined;
  /** Requests in progress, including those that wait; undefined = no limit. */
  readonly maxRequests?: number | undefined;
}

/** How connections are made. */
export interface ConnectionSettings {
  readonly tls?: BackendTls | undefined;
  readonly tcp?: BackendTcp | undefined;
  readonly tunnel?: ProxyRoute | undefined;
  /** Version of HTTP; undefined = as each request asks. */
  readonly version?: HttpVersion | undefined;
  readonly limits?: PoolLimits | undefined;
}

/** HTTP proxies that connections go through; all are equivalent. */
interface ProxyRoute {
  readonly proxies: readonly Address[];
  /** Value of Proxy-Authorization. */
  readonly authorization?: string | undefined;
  /** TLS to the proxies themselves. */
  readonly tls?: BackendTls | undefined;
}

/** Where connections go, and how they are made. */
export type PoolTarget = Address & ConnectionSettings;

/**
 * The identity of a pool: connections are shared where they are made in the same way. Those to discovered addresses are not shared with
 * targets that name the same address, which may be forbidden.
 */
export function poolKey(target: PoolTarget): string {
  const identity = settingsIdentity(target);
  const name = "discovered" in target ? `discovered:${targetName(target)}` : placeOf(target);
  return identity === "" ? name : `${name} ${identity}`;
}

function placeOf(target: Address): string {
  if ("path" in target || (target.at === undefined && target.dns?.family === undefined)) return targetName(target);
  const { at, host, port, dns } = target;
  return at === undefined ? `${targetName(target)} ${dns?.family}` : `${at.join()} ${host}:${port}`;
}

/** A name, each of whose addresses is an endpoint. */
export type FollowedTarget = HostAddress & ConnectionSettings;

export function isFollowed(target: PoolTarget): target is FollowedTarget {
  // A proxy resolves the name.
  return "host" in target && isIP(target.host) === 0 && target.tunnel === undefined && target.dns?.mode !== "first";
}

/** Distinguishes these settings from others; `` for none. */
export function settingsIdentity({ tls, tcp, tunnel, version, limits }: ConnectionSettings): string {
  if ([tls, tcp, tunnel, version, limits].every((setting) => setting === undefined)) return "";
  return tlsIdentity({ tls, tcp, tunnel, version, limits });
}

/** `host:port`, `[host]:port` for IPv6, or `unix:path`. */
export function targetName(target: Address): string {
  if ("path" in target) return `unix:${target.path}`;
  if (target.srv !== undefined && target.at === undefined) return `srv:${target.srv}`;
  const { at: [host] = [target.host], port } = target;
  return host?.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}

/**
 * Which requests go out as HTTP/2 (docs/lifecycle.md#8-attempt): all, those that ask for it, all if the server agrees to it in
 * the handshake, or none.
 */
export type Http2Use = "always" | "asked" | "offered" | "never";

export function http2Use({ tls, version }: ConnectionSettings): Http2Use {
  if (version !== undefined) return version === "HTTP/2.0" ? "always" : "never";
  if (tls?.alpn?.includes("h2") !== true) return "asked";
  return tls.alpn.includes("http/1.1") ? "offered" : "always";
}

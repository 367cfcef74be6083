import { tlsIdentity } from "../http/tls-client.ts";
import type { BackendTcp, BackendTls } from "../ir/policies.ts";

export type Address = { readonly host: string; readonly port: number } | { readonly path: string };

/** How connections are made. */
export interface ConnectionSettings {
  readonly tls?: BackendTls | undefined;
  readonly tcp?: BackendTcp | undefined;
  readonly tunnel?: ProxyRoute | undefined;
}

/** HTTP proxies that connections go through: one is as good as the other. */
export interface ProxyRoute {
  readonly proxies: readonly Address[];
  /** Value of Proxy-Authorization. */
  readonly authorization?: string | undefined;
  /** TLS to the proxies themselves. */
  readonly tls?: BackendTls | undefined;
}

/** Where connections go, and how they are made. */
export type PoolTarget = Address & ConnectionSettings;

/** The identity of a pool: connections are shared where they are made in the same way. */
export function poolKey(target: PoolTarget): string {
  const { tls, tcp, tunnel } = target;
  const name = targetName(target);
  if (tls === undefined && tcp === undefined && tunnel === undefined) return name;
  return `${name} ${tlsIdentity({ tls, tcp, tunnel })}`;
}

export function targetName(target: Address): string {
  if ("path" in target) return `unix:${target.path}`;
  return target.host.includes(":") ? `[${target.host}]:${target.port}` : `${target.host}:${target.port}`;
}

import { tlsIdentity } from "../http/tls-client.ts";
import type { BackendTcp, BackendTls } from "../ir/policies.ts";

type Address = { readonly host: string; readonly port: number } | { readonly path: string };

/** Where connections go, and how they are made. */
export type PoolTarget = Address & {
  readonly tls?: BackendTls | undefined;
  readonly tcp?: BackendTcp | undefined;
};

/** The identity of a pool: connections are shared where they are made in the same way. */
export function poolKey(target: PoolTarget): string {
  const { tls, tcp } = target;
  const name = targetName(target);
  return tls === undefined && tcp === undefined ? name : `${name} ${tlsIdentity({ tls, tcp })}`;
}

export function targetName(target: Address): string {
  if ("path" in target) return `unix:${target.path}`;
  return target.host.includes(":") ? `[${target.host}]:${target.port}` : `${target.host}:${target.port}`;
}

import { isLoopback, isUnspecified } from "../../base/host-addresses.ts";
import { ipBytes } from "../../base/ip-bytes.ts";
import { formatHostPort, type ListenAddress } from "../../base/listen-address.ts";
import { callersOf } from "../../ir/callers-of.ts";
import type { Ir } from "../../ir/ir.ts";
import type { Problem } from "../parse/document.ts";

/**
 * Backends and callouts that name a port of the gateway itself by an address that is surely one of this host. Egress refuses such
 * connections, so the route would fail with every request.
 */
export function ownPortProblems(ir: Ir, servers: Readonly<Record<string, ListenAddress>>): Problem[] {
  const owners = new Map<string, string>();
  for (const { key, port, protocol, mode } of ir.binds)
    if (mode === "standard" && port !== 0) owners.set(`${port} ${protocol === "udp"}`, key);
  for (const [field, address] of Object.entries(servers))
    if ("port" in address && address.port !== 0) owners.set(`${address.port} false`, field);
  return callersOf(ir).flatMap(({ owner, host, port, udp }) => {
    const own = isSurelyThisHost(host) ? owners.get(`${port} ${udp}`) : undefined;
    if (own === undefined) return [];
    const server = own.startsWith("config.");
    return {
      message: `${owner}: ${formatHostPort(host, port)} is a port of this gateway itself (${own}), to which it does not connect: ${
        server ? "requests would fail" : "requests would go round and get 508"
      }`,
      expected: server ? "another host or port, or internal: forward for the admin API" : "another host or port",
    };
  });
}

/** Other names and addresses may be those of other hosts where the gateway runs. */
function isSurelyThisHost(host: string): boolean {
  if (host.toLowerCase() === "localhost") return true;
  const bytes = ipBytes(host);
  return bytes !== undefined && (isLoopback(bytes) || isUnspecified(bytes));
}

import { isLoopback, isUnspecified } from "../../base/host-addresses.ts";
import { ipBytes } from "../../base/ip-address.ts";
import { formatHostPort, type ListenAddress } from "../../base/listen-address.ts";
import { formatPath, type Path } from "../../base/paths.ts";
import { bindAddresses } from "../../ir/bind-addresses.ts";
import { callersOf } from "../../ir/callers-of.ts";
import type { Ir } from "../../ir/ir.ts";
import type { ConfigSet } from "../parse/config-set.ts";
import { reaches } from "./addresses.ts";

/**
 * Reports backends and callouts that name a port of the gateway itself by an address that is certainly one of this host. Egress refuses such
 * connections, so every request would fail.
 */
export function reportOwnPorts(
  ir: Ir,
  { written, servers }: { readonly written: unknown; readonly servers: Readonly<Record<string, ListenAddress>> },
  document: Pick<ConfigSet, "report" | "reportElsewhere">,
): void {
  const owners: { readonly id: string; readonly host: string; readonly name: string }[] = [];
  for (const [field, address] of Object.entries(servers))
    if ("port" in address && address.port !== 0) owners.push({ id: `${address.port} false`, host: "::", name: field });
  for (const bind of ir.binds)
    for (const address of bind.mode === "standard" && bind.port !== 0 ? bindAddresses(bind, bind.port) : [])
      if ("host" in address)
        owners.push({ id: `${bind.port} ${bind.protocol === "udp"}`, host: address.host, name: bind.key });
  const reported = new Set<string>();
  for (const { owner, host, port, udp } of callersOf(ir)) {
    const owned = ({ id, host: at }: (typeof owners)[number]): boolean => id === `${port} ${udp}` && reaches(host, at);
    const own = isSurelyThisHost(host) ? owners.find(owned)?.name : undefined;
    if (own === undefined) continue;
    const server = own.startsWith("config.");
    const address = formatHostPort(host, port);
    const problem = {
      message: `${address} is a port of this gateway itself (${own}), to which it does not connect: ${
        server ? "requests would fail" : "requests would loop and get 508"
      }`,
      expected: server ? "another host or port, or internal: forward for the admin API" : "another host or port",
    };
    const places = hostFields(written, address);
    if (places.length === 0) document.reportElsewhere({ ...problem, message: `${owner}: ${problem.message}` });
    for (const path of places) {
      const id = `${formatPath(path)} ${problem.message}`;
      if (!reported.has(id)) document.report(path, problem);
      reported.add(id);
    }
  }
}

/** Where the configuration has the address as the `host` of a backend or service. */
function hostFields(value: unknown, address: string, path: Path = []): Path[] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([name, field]) => {
    const at = [...path, Array.isArray(value) ? Number(name) : name];
    return name === "host" && field === address ? [at] : hostFields(field, address, at);
  });
}

/** Other names and addresses may belong to other hosts where the gateway runs. */
function isSurelyThisHost(host: string): boolean {
  if (host.toLowerCase() === "localhost") return true;
  const bytes = ipBytes(host);
  return bytes !== undefined && (isLoopback(bytes) || isUnspecified(bytes));
}

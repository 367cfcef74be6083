import type { Ir } from "./ir.ts";

/** A place in a configuration that leads to an address. */
interface Caller {
  /** The key of the route, backend or bind that is nearest to it. */
  readonly owner: string;
  readonly host: string;
  readonly port: number;
  readonly udp: boolean;
}

/** All backends, mirrors and callouts of a configuration that name a host, each once. */
export function callersOf({
  binds,
  routeGroups,
  backends,
  workloads,
}: Pick<Ir, "binds" | "routeGroups" | "backends" | "workloads">): Caller[] {
  const found = new Map<string, Caller>();
  const ofPools = Map.groupBy(workloads, ({ services }) => Object.keys(services)[0]);
  const visit = (value: unknown, owner: string, udp: boolean): void => {
    if (typeof value !== "object" || value === null) return;
    const { type, key, host, port } = value as Readonly<Record<string, unknown>>;
    if (type === "static" && typeof host === "string" && typeof port === "number")
      found.set(`${owner} ${host} ${port} ${udp}`, { owner, host, port, udp });
    if (type === "pool" && typeof key === "string")
      for (const { address } of ofPools.get(key) ?? []) visit({ type: "static", ...address }, owner, udp);
    const name = typeof key === "string" && type !== "service" && type !== "pool" ? key : owner;
    for (const part of Object.values(value)) visit(part, name, udp);
  };
  for (const bind of binds) visit(bind, bind.key, bind.protocol === "udp");
  visit([routeGroups, backends], "", false);
  return [...found.values()];
}

import type { Ir } from "./ir.ts";

/**
 * The keys of the routes, backends and binds of a configuration whose backends, mirrors or callouts have this port, with the host
 * that they name: for the log, when something has led to a server that nothing should reach.
 */
export function callersOf(ir: Ir, port: number): string[] {
  const served = ir.workloads.flatMap(({ services }) =>
    Object.entries(services).flatMap(([key, ports]) => (Object.values(ports).includes(port) ? [key] : [])),
  );
  const found = new Set<string>();
  const visit = (value: unknown, owner: string): void => {
    if (typeof value !== "object" || value === null) return;
    const { type, key, host } = value as { readonly type?: unknown; readonly key?: unknown; readonly host?: unknown };
    if (type === "static" && "port" in value && value.port === port) found.add(`${owner} (${host}:${port})`);
    else if (type === "service" && served.includes(String(key))) found.add(`${owner} (service ${key})`);
    const name = typeof key === "string" && type !== "service" ? key : owner;
    for (const part of Object.values(value)) visit(part, name);
  };
  visit([ir.binds, ir.routeGroups, ir.backends], "");
  return [...found];
}

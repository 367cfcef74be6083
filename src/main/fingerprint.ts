import { hash } from "node:crypto";
import type { Ir } from "../ir/ir.ts";
import type { SampledConfiguration } from "../recorder/sample-file.ts";
import { dumpIr } from "./config-dump.ts";

/** A configuration as a dump shows it without the state of a gateway. */
const NOTHING_LIVE = { ports: {}, endpoints: new Map(), calls: new Map(), locality: {} };
/** Characters of the digest. It detects mistakes, not attacks. */
const DIGEST = 16;

/** Identifies a configuration by everything that a dump shows. Secrets are not part of it: otherwise a reader could guess them by comparing digests. */
export function fingerprintOf(ir: Ir, hidden: ReadonlySet<string>): SampledConfiguration {
  const owners = [...ir.binds.flatMap(({ listeners }) => listeners), ...ir.routeGroups];
  const routes = owners.flatMap((owner) => owner.routes.map(({ namespace, name }) => `${namespace}/${name}`));
  const digest = hash("sha256", JSON.stringify(dumpIr(ir, { ...NOTHING_LIVE, hidden }))).slice(0, DIGEST);
  return { digest, routes: [...new Set(routes)].sort() };
}

/** Routes that a message names. */
const MAX_NAMED = 3;

/** How the configuration of these samples differs from another one, as far as the names of routes say; undefined: they are the same. */
export function differenceBetween(taken: SampledConfiguration, other: SampledConfiguration): string | undefined {
  if (taken.digest === other.digest) return undefined;
  const without = (some: SampledConfiguration, others: SampledConfiguration): string | undefined => {
    const known = new Set(others.routes);
    const names = some.routes.filter((route) => !known.has(route));
    const more = names.length > MAX_NAMED ? ` and ${names.length - MAX_NAMED} more` : "";
    return names.length === 0 ? undefined : `${names.slice(0, MAX_NAMED).join(", ")}${more}`;
  };
  const missing = without(taken, other);
  const added = without(other, taken);
  const parts = [missing && `it lacks the routes ${missing}`, added && `it has more routes: ${added}`];
  return (
    parts.filter((part) => part !== undefined).join(", ") ||
    "its routes have the same names, and something else differs"
  );
}

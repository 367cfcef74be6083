import type { Ir } from "../ir/ir.ts";
import type { Diagnostic } from "./diagnostics.ts";
import { type ConfigSource, loadConfig } from "./load.ts";

/** What `tracegate check` tells. */
export interface CheckReport {
  readonly ok: boolean;
  readonly diagnostics: readonly Diagnostic[];
  /** How much a valid configuration holds. */
  readonly summary?: {
    readonly binds: number;
    readonly listeners: number;
    /** HTTP routes, those of route groups included. */
    readonly routes: number;
    readonly tcpRoutes: number;
    readonly backends: number;
  };
}

/** Loads a configuration as a start would, without starting anything. */
export function checkConfig(source: ConfigSource, env: Readonly<Record<string, string | undefined>>): CheckReport {
  const loaded = loadConfig(source, env);
  if (!loaded.ok) return { ok: false, diagnostics: loaded.diagnostics };
  return { ok: true, diagnostics: loaded.warnings, summary: summarize(loaded.ir) };
}

function summarize(ir: Ir): NonNullable<CheckReport["summary"]> {
  const listeners = ir.binds.flatMap((bind) => bind.listeners);
  const routes = [...listeners.flatMap((each) => each.routes), ...ir.routeGroups.flatMap((group) => group.routes)];
  const tcpRoutes = listeners.flatMap((each) => each.tcpRoutes);
  const backends = new Set([...routes, ...tcpRoutes].flatMap((route) => route.backends.map((backend) => backend.key)));
  return {
    binds: ir.binds.length,
    listeners: listeners.length,
    routes: routes.length,
    tcpRoutes: tcpRoutes.length,
    backends: backends.size,
  };
}

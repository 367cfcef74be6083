import type { Ir } from "../ir/ir.ts";
import { type Diagnostic, strictly } from "../translation/problems/diagnostics.ts";
import { ResourceStore, shownUrl } from "../translation/resources/store.ts";
import { type ConfigSource, type LoadResult, loadConfig, rereadable } from "./load.ts";
import { loadWithResources } from "./load-thread.ts";

/** The result of `tracegate check`. */
export interface CheckReport {
  readonly ok: boolean;
  readonly diagnostics: readonly Diagnostic[];
  /** Fields that the file sets and that only a restart changes, such as `config.adminAddr`; absent if the file sets none of them. */
  readonly startOnly?: readonly string[];
  /** URLs of documents that were not fetched and not checked, because of `--offline`; absent if all were. */
  readonly notFetched?: readonly string[];
  /** Numbers of objects in a valid configuration. */
  readonly summary?: {
    readonly binds: number;
    readonly listeners: number;
    /** HTTP routes, those of route groups included. */
    readonly routes: number;
    readonly tcpRoutes: number;
    readonly backends: number;
  };
}

/**
 * Loads a configuration as at start-up, including the documents behind its URLs, without starting anything. `offline`: makes no
 * network request, and lists the documents that it has not fetched.
 */
export async function checkConfig(
  source: ConfigSource,
  env: Readonly<Record<string, string | undefined>>,
  { offline = false } = {},
): Promise<{ readonly report: CheckReport; readonly loaded: LoadResult }> {
  const again = rereadable(source);
  if (offline) {
    const loaded = loadConfig(again, env);
    const { urls } = loaded;
    const notFetched = urls.length > 0 && { notFetched: [...new Set(urls)].map(shownUrl) };
    return { report: { ...reportOf(loaded), ...notFetched }, loaded };
  }
  const store = ResourceStore.ofFile();
  const loaded = await loadWithResources((known) => store.obeying(loadConfig(again, env, known)), store);
  return { report: reportOf(loaded), loaded };
}

/** The report about a loaded configuration. */
export function reportOf(loaded: LoadResult): CheckReport {
  if (!loaded.ok) return { ok: false, diagnostics: loaded.diagnostics };
  const { warnings, startOnly, ir } = loaded;
  return { ok: true, diagnostics: warnings, ...(startOnly.length > 0 && { startOnly }), summary: summarize(ir) };
}

/** The report with warnings as errors. */
export function strictReport(report: CheckReport): CheckReport {
  const diagnostics = strictly(report.diagnostics);
  return { ...report, ok: report.ok && !diagnostics.some(({ severity }) => severity === "error"), diagnostics };
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

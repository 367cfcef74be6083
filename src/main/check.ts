import { type CheckReport, checkConfig } from "../config/check.ts";
import type { ConfigSource } from "../config/load.ts";
import { formatDiagnostics } from "../translation/problems/diagnostics.ts";

/** Prints the problems of a configuration, as text or JSON. Resolves with the exit code: 0 valid, 1 not. */
export async function check(
  source: ConfigSource,
  { json, offline = false }: { readonly json: boolean; readonly offline?: boolean },
  env: Readonly<Record<string, string | undefined>>,
  print: (text: string) => Promise<void>,
): Promise<number> {
  const report = await checkConfig(source, env, { offline });
  await print(json ? `${JSON.stringify(report, undefined, 2)}\n` : renderReport(report));
  return report.ok ? 0 : 1;
}

/** Every diagnostic with its position; for a valid configuration also the number of its objects. */
export function renderReport({ diagnostics, summary, startOnly, notFetched = [] }: CheckReport): string {
  const unseen = notFetched.map((url) => `note: not fetched and not checked, because of --offline: ${url}\n`).join("");
  const problems = formatDiagnostics(diagnostics) + unseen;
  if (summary === undefined) {
    const errors = diagnostics.filter((each) => each.severity === "error").length;
    return `${problems}${count(errors, "problem")}\n`;
  }
  const { binds, listeners, routes, tcpRoutes, backends } = summary;
  const counts = [
    count(binds, "bind"),
    count(listeners, "listener"),
    count(routes, "route"),
    ...(tcpRoutes > 0 ? [count(tcpRoutes, "TCP route")] : []),
    count(backends, "backend"),
  ];
  const note =
    startOnly === undefined ? "" : `note: read only at startup, so a change needs a restart: ${startOnly.join(", ")}\n`;
  return `${problems}valid: ${counts.join(", ")}\n${note}`;
}

function count(number: number, what: string): string {
  return `${number} ${what}${number === 1 ? "" : "s"}`;
}

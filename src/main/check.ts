import { type CheckReport, checkConfig } from "../config/check.ts";
import type { ConfigSource } from "../config/load.ts";
import { formatDiagnostics } from "../config/parse/diagnostics.ts";

/** Prints what is wrong with a configuration, for people or as JSON. Returns the exit code: 0 valid, 1 not. */
export async function check(
  source: ConfigSource,
  json: boolean,
  env: Readonly<Record<string, string | undefined>>,
  print: (text: string) => void,
): Promise<number> {
  return printReport(await checkConfig(source, env), json, print);
}

/** The same for a configuration that has been loaded. */
export function printReport(report: CheckReport, json: boolean, print: (text: string) => void): number {
  if (json) print(`${JSON.stringify(report, undefined, 2)}\n`);
  else {
    print(formatDiagnostics(report.diagnostics));
    const errors = report.diagnostics.filter((each) => each.severity === "error").length;
    if (report.summary !== undefined) {
      const { binds, listeners, routes, tcpRoutes, backends } = report.summary;
      const counts = [
        count(binds, "bind"),
        count(listeners, "listener"),
        count(routes, "route"),
        ...(tcpRoutes > 0 ? [count(tcpRoutes, "TCP route")] : []),
        count(backends, "backend"),
      ];
      print(`valid: ${counts.join(", ")}\n`);
      if (report.startOnly !== undefined)
        print(`note: read only at startup, so a change needs a restart: ${report.startOnly.join(", ")}\n`);
    } else print(`${count(errors, "problem")}\n`);
  }
  return report.ok ? 0 : 1;
}

function count(number: number, what: string): string {
  return `${number} ${what}${number === 1 ? "" : "s"}`;
}

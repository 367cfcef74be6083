import { checkConfig } from "../config/check.ts";
import { formatDiagnostics } from "../config/diagnostics.ts";
import type { ConfigSource } from "../config/load.ts";

/** Prints what is wrong with a configuration, for people or as JSON. Returns the exit code: 0 valid, 1 not. */
export function check(
  source: ConfigSource,
  json: boolean,
  env: Readonly<Record<string, string | undefined>>,
  print: (text: string) => void,
): number {
  const report = checkConfig(source, env);
  if (json) print(`${JSON.stringify(report, undefined, 2)}\n`);
  else {
    print(formatDiagnostics(report.diagnostics));
    const errors = report.diagnostics.filter((each) => each.severity === "error").length;
    if (report.summary !== undefined) {
      const { binds, listeners, routes, backends } = report.summary;
      print(`valid: ${binds} binds, ${listeners} listeners, ${routes} routes, ${backends} backends\n`);
    } else print(`${errors} ${errors === 1 ? "problem" : "problems"}\n`);
  }
  return report.ok ? 0 : 1;
}

/** The program `tracegate`: reads its command line. Only commands that need the engine load it, so `--help` answers at once. */
import { writeSync } from "node:fs";
import { ExpectedError } from "./main/expected-error.ts";
import { HELP, parseOptions } from "./main/options.ts";
import { print } from "./main/print.ts";
import { versionInfo } from "./main/version.ts";

async function main(): Promise<void> {
  const options = parseOptions(process.argv.slice(2));
  if (options.command === "help") print(HELP);
  else if (options.command === "version")
    print(options.long ? `${JSON.stringify(versionInfo(), undefined, 2)}\n` : `${versionInfo().version}\n`);
  else {
    const { runCommand } = await import("./main/commands.ts");
    await runCommand(options);
  }
}

main().catch((error: unknown) => {
  const expected = error instanceof ExpectedError;
  const text = error instanceof Error ? ((expected ? undefined : error.stack) ?? error.message) : String(error);
  writeSync(2, `tracegate: ${text}\n`);
  process.exit(expected ? error.exitCode : 1);
});

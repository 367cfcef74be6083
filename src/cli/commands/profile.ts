import { open, rm } from "node:fs/promises";
import { fileProblem } from "../../base/file-problem.ts";
import { adminResult, type ProxyAdmin } from "../proxy/admin.ts";
import { type Context, write, writeJson } from "../runner/context.ts";
import type { OptionSpecs } from "../runner/define-command.ts";
import { CliError } from "../runner/errors.ts";

export const PPROF_HELP = "The file is in pprof format; open it with go tool pprof, or in the browser with speedscope.";

export const HEAP_HELP = "Sampling starts with the first profile and stays on, so the first one is nearly empty.";

export const SECONDS_OPTION = {
  type: "integer",
  value: "seconds",
  min: 1,
  max: 300,
  default: 30,
  summary: "How long to record",
} as const;

/** Options of the commands that record a profile; the names of files begin with `prefix` by default. */
export function profileOptions(prefix: string) {
  return {
    output: {
      type: "text",
      short: "o",
      value: "file",
      completes: "file",
      summary: `File to write; default ${prefix}-<kind>-<date>-<time>.pb.gz in the current folder`,
    },
  } as const satisfies OptionSpecs;
}

/** Opens the file before the recording, so that a path that cannot be written fails at once; removes it on failure. */
export async function record(
  kind: "cpu" | "heap",
  admin: Pick<ProxyAdmin, "unreachable">,
  recorded: () => Promise<Uint8Array>,
  { output, prefix }: { readonly output: string | undefined; readonly prefix: string },
  context: Context,
): Promise<void> {
  const path = output ?? `${prefix}-${kind}-${stamp(new Date())}.pb.gz`;
  const file = await open(path, "w").catch((error: unknown) => {
    throw new CliError("failure", `failed to create output file ${path}: ${fileProblem(error)}`, { cause: error });
  });
  try {
    const profile = await adminResult(
      admin,
      recorded(),
      (status, body) => new CliError("failure", `${kind} profile returned ${status}: ${body}`),
    );
    await file.writeFile(profile);
    await file.close();
  } catch (error) {
    await file.close().catch(() => {});
    await rm(path, { force: true });
    throw error;
  }
  if (context.json) return writeJson(context, { kind, file: path });
  await write(context.stdout, `Wrote ${kind} profile to ${path}\n`);
}

/** `20260102-150405` in local time. */
function stamp(date: Date): string {
  const pad = (value: number) => String(value).padStart(2, "0");
  const day = `${date.getFullYear()}${pad(date.getMonth() + 1)}${pad(date.getDate())}`;
  return `${day}-${pad(date.getHours())}${pad(date.getMinutes())}${pad(date.getSeconds())}`;
}

import { type ExecFileException, execFile } from "node:child_process";
import type { GatewayProcess } from "./gateway.ts";
import { TRACEGATE } from "./programs.ts";

/** Result of `tracegate --take-over`: the processes that serve and drain, or what it printed about a failure. */
export type TakeOver = { readonly serves: number; readonly drains: number } | { readonly failure: string };

/** Has another process take over from the gateway, or from the one that has taken over from it. `runtime`: the variable by which it is found. */
export function takeOver(
  { file }: Pick<GatewayProcess, "file">,
  runtime: Readonly<Record<string, string>>,
): Promise<TakeOver> {
  const env = { ...process.env, LOG_FORMAT: "json", ...runtime };
  return new Promise((resolve) => {
    execFile(TRACEGATE, ["--take-over", "-f", file], { env }, (error: ExecFileException | null, stdout, stderr) => {
      const [, serves, drains] = /^process (\d+) serves, process (\d+) drains\n$/.exec(stdout) ?? [];
      if (error === null && serves !== undefined) resolve({ serves: Number(serves), drains: Number(drains) });
      else resolve({ failure: stderr });
    });
  });
}

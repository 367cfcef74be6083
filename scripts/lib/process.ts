import { spawn } from "node:child_process";
import { root } from "./files.ts";

/**
 * Runs a program of node_modules/.bin in the package's folder.
 * Resolves to its exit code (1 when a signal ended it or it could not start) and the output of both streams.
 */
export function run(tool: string, args: readonly string[]): Promise<{ code: number; output: string }> {
  return new Promise((resolve) => {
    const child = spawn(`${root}node_modules/.bin/${tool}`, args, { cwd: root, stdio: ["ignore", "pipe", "pipe"] });
    let output = "";
    const collect = (chunk: string): void => {
      output += chunk;
    };
    child.stdout.setEncoding("utf8").on("data", collect);
    child.stderr.setEncoding("utf8").on("data", collect);
    child.on("error", (error) => resolve({ code: 1, output: `${tool}: ${error.message}; run "npm ci" first\n` }));
    child.on("close", (code) => resolve({ code: code ?? 1, output }));
  });
}

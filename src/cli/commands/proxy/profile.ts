import { open, rm } from "node:fs/promises";
import type { AdminClient } from "../../../admin/client.ts";
import { adminResult } from "../../admin.ts";
import { type Context, write, writeJson } from "../../context.ts";
import { defineCommand, type OptionSpecs } from "../../define-command.ts";
import { CliError, describe } from "../../errors.ts";
import { openProxies, RESOURCE, TARGET_OPTIONS, type TargetWords } from "../../proxies.ts";

const PROFILE_OPTIONS = {
  ...TARGET_OPTIONS,
  output: {
    type: "text",
    short: "o",
    value: "file",
    completes: "file",
    summary: "File to write; default tracegate-<kind>-<date>-<time>.pb.gz in the current folder",
  },
} as const satisfies OptionSpecs;

export const profileCpu = defineCommand({
  name: "cpu",
  summary: "Record a CPU profile of the proxy",
  description: ["The file is in pprof format; open it with go tool pprof, or in the browser with speedscope."],
  argument: RESOURCE,
  options: {
    ...PROFILE_OPTIONS,
    seconds: { type: "integer", value: "seconds", min: 1, max: 300, default: 30, summary: "How long to record" },
  },
  examples: [
    { does: "30 seconds", run: "proxy profile cpu" },
    { does: "Five seconds, to a named file", run: "proxy profile cpu --seconds 5 -o cpu.pb.gz" },
  ],
  async run(invocation, context) {
    const { seconds, output } = invocation.options;
    await record(
      "cpu",
      invocation,
      (client) => client.cpuProfile(seconds, { signal: context.signal }),
      output,
      context,
    );
  },
});

export const profileHeap = defineCommand({
  name: "heap",
  summary: "Record a heap profile of the proxy",
  description: ["The file is in pprof format; open it with go tool pprof, or in the browser with speedscope."],
  argument: RESOURCE,
  options: PROFILE_OPTIONS,
  examples: [{ does: "The heap of the proxy on this machine", run: "proxy profile heap -o heap.pb.gz" }],
  async run(invocation, context) {
    const { output } = invocation.options;
    await record("heap", invocation, (client) => client.heapProfile({ signal: context.signal }), output, context);
  },
});

/** Opens the file before the recording, so that a path that cannot be written fails at once; removes it on failure. */
async function record(
  kind: "cpu" | "heap",
  words: TargetWords,
  recorded: (client: AdminClient) => Promise<Uint8Array>,
  output: string | undefined,
  context: Context,
): Promise<void> {
  await using proxies = await openProxies(words, context);
  const proxy = await proxies.first();
  const path = output ?? `tracegate-${kind}-${stamp(new Date())}.pb.gz`;
  const file = await open(path, "w").catch((error: unknown) => {
    throw new CliError("failure", `failed to create output file ${path}: ${describe(error)}`, { cause: error });
  });
  try {
    const profile = await adminResult(
      proxy,
      recorded(proxy.client),
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

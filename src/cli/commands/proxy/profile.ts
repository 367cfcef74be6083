import type { AdminClient } from "../../../admin/client/client.ts";
import { RESOURCE, TARGET_OPTIONS, type TargetWords } from "../../proxy/proxies.ts";
import type { Context } from "../../runner/context.ts";
import { defineCommand, type OptionSpecs } from "../../runner/define-command.ts";
import { usage } from "../../runner/errors.ts";
import { openProxies } from "../open-proxies.ts";
import { HEAP_HELP, PPROF_HELP, profileOptions, record, SECONDS_OPTION } from "../profile.ts";

const OPTIONS = {
  ...TARGET_OPTIONS,
  port: { ...TARGET_OPTIONS["proxy-admin-port"], short: "p", summary: "The same as --proxy-admin-port" },
  ...profileOptions("tracegate"),
} as const satisfies OptionSpecs;

export const profileCpu = defineCommand({
  name: "cpu",
  summary: "Record a CPU profile of the proxy",
  description: [PPROF_HELP],
  argument: RESOURCE,
  options: { ...OPTIONS, seconds: SECONDS_OPTION },
  examples: [
    { does: "30 seconds", run: "proxy profile cpu" },
    { does: "Five seconds, to a named file", run: "proxy profile cpu --seconds 5 -o cpu.pb.gz" },
    { does: "Of a Gateway in Kubernetes", run: "proxy profile cpu gateway/web -n shop" },
  ],
  run(invocation, context) {
    const { seconds, output } = invocation.options;
    const { signal } = context;
    return recordProxy("cpu", invocation, (client) => client.cpuProfile(seconds, { signal }), output, context);
  },
});

export const profileHeap = defineCommand({
  name: "heap",
  summary: "Record a heap profile of the proxy",
  description: [PPROF_HELP, HEAP_HELP],
  argument: RESOURCE,
  options: OPTIONS,
  examples: [{ does: "The heap of the proxy on this machine", run: "proxy profile heap -o heap.pb.gz" }],
  run(invocation, context) {
    const { output } = invocation.options;
    const { signal } = context;
    return recordProxy("heap", invocation, (client) => client.heapProfile({ signal }), output, context);
  },
});

type ProfileWords = TargetWords & { readonly options: { readonly port: number | undefined } };

async function recordProxy(
  kind: "cpu" | "heap",
  { argument, options }: ProfileWords,
  recorded: (client: AdminClient) => Promise<Uint8Array>,
  output: string | undefined,
  context: Context,
): Promise<void> {
  const { port, "proxy-admin-port": adminPort } = options;
  if (port !== undefined && adminPort !== undefined)
    throw usage("--port and --proxy-admin-port are mutually exclusive");
  const words = { argument, options: { ...options, "proxy-admin-port": port ?? adminPort } };
  await using proxies = await openProxies(words, context);
  const proxy = await proxies.first();
  await record(kind, proxy, () => recorded(proxy.client), { output, prefix: "tracegate" }, context);
}

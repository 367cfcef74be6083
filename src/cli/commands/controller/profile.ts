import type { ControllerClient } from "../../../admin/client/controller-client.ts";
import type { Context } from "../../runner/context.ts";
import { defineCommand, type Invocation } from "../../runner/define-command.ts";
import { HEAP_HELP, PPROF_HELP, profileOptions, record, SECONDS_OPTION } from "../profile.ts";
import { CONTROLLER_OPTIONS } from "./options.ts";

const OPTIONS = { ...CONTROLLER_OPTIONS, ...profileOptions("tracegate-controller") };

export const controllerProfileCpu = defineCommand({
  name: "cpu",
  summary: "Record a CPU profile of the controller",
  description: [PPROF_HELP],
  options: { ...OPTIONS, seconds: SECONDS_OPTION },
  examples: [{ does: "Five seconds, to a named file", run: "controller profile cpu --seconds 5 -o cpu.pb.gz" }],
  run({ options }, context) {
    const { signal } = context;
    return recordController("cpu", options, (client) => client.cpuProfile(options.seconds, { signal }), context);
  },
});

export const controllerProfileHeap = defineCommand({
  name: "heap",
  summary: "Record a heap profile of the controller",
  description: [PPROF_HELP, HEAP_HELP],
  options: OPTIONS,
  examples: [{ does: "What the controller holds", run: "controller profile heap -o heap.pb.gz" }],
  run({ options }, context) {
    return recordController("heap", options, (client) => client.heapProfile({ signal: context.signal }), context);
  },
});

async function recordController(
  kind: "cpu" | "heap",
  options: Invocation<typeof OPTIONS>["options"],
  recorded: (client: ControllerClient) => Promise<Uint8Array>,
  context: Context,
): Promise<void> {
  const { Controllers } = await import("../../cluster/controllers.ts");
  await using controllers = await Controllers.open(options, context);
  const controller = await controllers.first();
  const file = { output: options.output, prefix: "tracegate-controller" };
  await record(kind, controller, () => recorded(controller.client), file, context);
}

import { print } from "../../dump/dump.ts";
import { adminResult } from "../../proxy/admin.ts";
import { defineCommand } from "../../runner/define-command.ts";
import { usage } from "../../runner/errors.ts";
import { OUTPUT_OPTION } from "../../runner/output-option.ts";
import { CONTROLLER_OPTIONS } from "./options.ts";

const SNAPSHOTS = ["objects", "gateways", "proxies"] as const;

export const controllerSnapshot = defineCommand({
  name: "snapshot",
  summary: "Show what the controller holds: objects of the cluster, what each Gateway is sent, connected proxies",
  description: ["The snapshot is that of the first running replica. It contains no secrets."],
  argument: { name: "snapshot", summary: `One of ${SNAPSHOTS.join(", ")}`, required: true, choices: SNAPSHOTS },
  options: {
    ...CONTROLLER_OPTIONS,
    output: {
      ...OUTPUT_OPTION,
      default: "json",
      choices: ["json", "yaml"],
      summary: "Output format",
    },
  },
  examples: [
    { does: "What the proxies of each Gateway are sent", run: "controller snapshot gateways" },
    { does: "Which proxies are connected", run: "controller snapshot proxies -o yaml" },
  ],
  async run({ argument = "", options }, context) {
    if (!SNAPSHOTS.some((known) => known === argument))
      throw usage(`unknown snapshot "${argument}"`, `one of ${SNAPSHOTS.join(", ")}`);
    const { Controllers } = await import("../../cluster/controllers.ts");
    await using controllers = await Controllers.open(options, context);
    const controller = await controllers.first();
    const { signal } = context;
    const snapshot = await adminResult(controller, controller.client.snapshot(argument, { signal }));
    await print(snapshot, options.output, context, () => "");
  },
});

import { answerOf, localAdmin } from "../../admin.ts";
import { defineCommand } from "../../define-command.ts";
import { OUTPUT_OPTION, print } from "../../dump/output.ts";
import { record, text } from "../../dump/read.ts";
import { CliError } from "../../errors.ts";
import { statusLines } from "../../status.ts";
import { RESOURCE, requireTarget, TARGET_OPTIONS } from "./target.ts";

export const status = defineCommand({
  name: "status",
  summary: "Show which configuration is in force, and whether it is the newest one",
  description: [
    "Exits with 1 when the proxy is not synchronized: the newest configuration was refused, or is not in force in every worker yet. The lines above the error say why.",
  ],
  argument: RESOURCE,
  options: { ...TARGET_OPTIONS, output: OUTPUT_OPTION },
  examples: [
    { does: "Did the last change of the file come into force?", run: "proxy status" },
    { does: "For a program", run: "status -o json" },
  ],
  async run(invocation, context) {
    requireTarget(invocation);
    const { output, "proxy-admin-port": port } = invocation.options;
    const found = await answerOf(
      localAdmin(port, context.env).configStatus({ signal: context.signal }),
      (code, body) => new CliError("failure", `unexpected status code: ${code}`, { why: body }),
    );
    await print(found, output, context, () => statusLines(record(found)));
    if (found.synchronized) return;
    throw new CliError("failure", "the newest configuration is not in force", {
      why:
        text(found.lastError?.message).split("\n")[0] ||
        (record(found).diskDiffers === true ? "what is on disk differs from it" : "the proxy has not applied it yet"),
    });
  },
});

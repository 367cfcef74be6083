import { defineCommand } from "../define-command.ts";
import { writeBuild } from "../version.ts";

export const version = defineCommand({
  name: "version",
  summary: "Print the version of this client as one line of JSON",
  options: {},
  examples: [{ does: "Which version is this?", run: "version" }],
  run: (_invocation, context) => writeBuild(context),
});

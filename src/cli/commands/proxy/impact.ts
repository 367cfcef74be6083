import { fieldsOf, jsonOf } from "../../../base/fields.ts";
import { changesIn, FAIL_ON, impactText } from "../../../impact/impact-text.ts";
import { mergeImpacts } from "../../../impact/merge.ts";
import type { ExplainRefusal } from "../../../rehearsal/explanation.ts";
import { adminResult, queryError } from "../../proxy/admin.ts";
import { failureOf, RESOURCE, TARGET_OPTIONS } from "../../proxy/proxies.ts";
import { write, writeJson } from "../../runner/context.ts";
import { defineCommand } from "../../runner/define-command.ts";
import { CliError, usage } from "../../runner/errors.ts";
import { OUTPUT_OPTION } from "../../runner/output-option.ts";
import { openProxies } from "../open-proxies.ts";
import { readConfig } from "../read-config.ts";

export const impact = defineCommand({
  name: "impact",
  summary: "Show what a new configuration would do to the requests that the proxy has got",
  description: [
    "Every gateway samples requests as they arrive, with secrets as digests. It decides each of them with the configuration in effect and with the new one, and shows what would differ: who is refused, who gets another route or backend, what else changes on the way. A sample stands for as many requests as were not sampled before it. Nothing is applied. In a cluster, the samples of all pods count.",
    "Where the difference depends on what is not known of a request, such as a cookie that only one of the configurations reads, the text says what that is.",
  ],
  argument: RESOURCE,
  options: {
    ...TARGET_OPTIONS,
    config: {
      type: "text",
      value: "file",
      completes: "file",
      summary: "The new configuration; it cannot name files or variables",
    },
    last: { type: "text", value: "time", summary: "Only requests that arrived within this time, such as 1h" },
    "fail-on": {
      type: "list",
      value: "changes",
      summary: `Exit with 1 if requests change like this: ${FAIL_ON.join(", ")}`,
    },
    output: { ...OUTPUT_OPTION, choices: ["text", "json"], default: "text", summary: "Output format" },
  },
  examples: [
    { does: "Whom a change would refuse", run: "impact --config new.yaml" },
    {
      does: "The same at all pods, in CI",
      run: "impact gateway/web -n shop --config new.yaml --fail-on refused,moved",
    },
  ],
  async run(invocation, context) {
    const { config, last, "fail-on": failOn, output } = invocation.options;
    if (config === undefined) throw usage("impact needs the new configuration", "tgctl impact --config FILE");
    const unknown = failOn.find((name) => !FAIL_ON.includes(name));
    if (unknown !== undefined) throw usage(`--fail-on ${unknown}: no such change`, `one of ${FAIL_ON.join(", ")}`);
    const { text, name } = readConfig(config);
    await using proxies = await openProxies(invocation, context);
    const outcomes = await proxies.each((proxy) =>
      adminResult(proxy, proxy.client.impact(text, { last, name, signal: context.signal }), badChange),
    );
    const found = outcomes.flatMap(({ result }) => (result.status === "fulfilled" ? [result.value] : []));
    const failure = failureOf(outcomes);
    if (failure !== undefined && found.length === 0) throw failure;
    const all = mergeImpacts(found);
    if (context.json || output === "json") await writeJson(context, all);
    else await write(context.stdout, impactText(all, all.since));
    // What the others have found is shown, but it is not the whole impact.
    if (failure !== undefined) throw failure;
    return changesIn(all, failOn) ? 1 : 0;
  },
});

/** Why a gateway does not compare a configuration. */
export function badChange(status: number, body: string): CliError {
  const { error } = fieldsOf(jsonOf(body)) as Partial<ExplainRefusal>;
  if (error !== undefined) return new CliError("failure", error.message);
  return queryError(status, body, "this version of the gateway takes no samples");
}

import { fieldsOf, jsonOf } from "../../../base/fields.ts";
import { changesIn, FAIL_ON, impactText } from "../../../impact/impact-text.ts";
import { mergeImpacts } from "../../../impact/merge.ts";
import type { ExplainRefusal } from "../../../rehearsal/explanation.ts";
import type { KeptPreview } from "../../cluster/preview.ts";
import { adminResult, queryError } from "../../proxy/admin.ts";
import { failureOf, RESOURCE, TARGET_OPTIONS } from "../../proxy/proxies.ts";
import { write, writeJson } from "../../runner/context.ts";
import { defineCommand } from "../../runner/define-command.ts";
import { CliError, usage } from "../../runner/errors.ts";
import { OUTPUT_OPTION } from "../../runner/output-option.ts";
import { ASKED_CONTROLLER } from "../controller/options.ts";
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
      type: "list",
      whole: true,
      value: "file",
      completes: "file",
      summary: "The new configuration, a file or folder, may be given several times; it cannot name files or variables",
    },
    filename: {
      type: "list",
      short: "f",
      value: "file",
      whole: true,
      summary:
        "Changed objects of the cluster instead, in YAML or JSON: a file, a folder, or - for standard input; may be given several times",
    },
    ...ASKED_CONTROLLER,
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
    { does: "What a changed route would do in a cluster", run: "impact gateway/web -n shop -f route.yaml" },
    { does: "The same in CI", run: "impact gateway/web -n shop -f manifests/ --fail-on refused,moved" },
  ],
  async run(invocation, context) {
    const { config, filename, last, "fail-on": failOn, output } = invocation.options;
    if ((config.length === 0) === (filename.length === 0))
      throw usage(
        "impact needs either a new configuration or changed objects",
        "tgctl impact --config FILE, or -f FILE in a cluster",
      );
    const unknown = failOn.find((name) => !FAIL_ON.includes(name));
    if (unknown !== undefined) throw usage(`--fail-on ${unknown}: no such change`, `one of ${FAIL_ON.join(", ")}`);
    await using proxies = await openProxies(invocation, context);
    let objects: KeptPreview | undefined;
    if (config.length === 0) {
      if (!proxies.inCluster) throw usage("-f names objects of a cluster", "tgctl impact gateway/NAME -f FILE");
      // Loads the Kubernetes client.
      const { keepPreview } = await import("../../cluster/preview.ts");
      objects = await keepPreview(filename, invocation, context);
    }
    const after = objects === undefined ? { texts: readConfig(config) } : { preview: objects.id };
    const outcomes = await proxies.each((proxy) =>
      adminResult(proxy, proxy.client.impact(after, { last, signal: context.signal }), badChange),
    );
    const found = outcomes.flatMap(({ result }) => (result.status === "fulfilled" ? [result.value] : []));
    const failure = failureOf(outcomes);
    if (failure !== undefined && found.length === 0) throw failure;
    const all = mergeImpacts(found);
    const { problems = [], missing = [], ignored = [] } = objects ?? {};
    if (context.json || output === "json")
      await writeJson(context, objects === undefined ? all : { ...all, objects: { problems, missing, ignored } });
    else await write(context.stdout, `${objectsText({ problems, missing, ignored })}${impactText(all, all.since)}`);
    // What the others have found is shown, but it is not the whole impact.
    if (failure !== undefined) throw failure;
    return changesIn(all, failOn) || (failOn.length > 0 && problems.length > 0) ? 1 : 0;
  },
});

/** What people have to know about changed objects, line by line; empty if all is well. */
function objectsText({ problems, missing, ignored }: Omit<KeptPreview, "id">): string {
  const lines = [
    ...problems.map(
      ({ kind, key, condition, reason, message }) => `${kind} ${key}: ${condition} is not met, ${reason}: ${message}`,
    ),
    ...missing.map(({ kind, key }) =>
      kind === "FetchedDocument"
        ? `${key} counts as missing: the controller fetches it when an applied object needs it`
        : `${kind} ${key} counts as missing: no applied object refers to it, so the controller has not read it; add it to -f`,
    ),
    ...ignored.map((name) => `${name} is ignored: the controller reads no such objects`),
  ];
  return lines.map((line) => `${line}\n`).join("");
}

/** Why a gateway does not compare a configuration. */
export function badChange(status: number, body: string): CliError {
  const { error } = fieldsOf(jsonOf(body)) as Partial<ExplainRefusal>;
  if (error !== undefined) return new CliError("failure", error.message);
  return queryError(status, body, "this version of the gateway takes no samples");
}

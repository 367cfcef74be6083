import { readFileSync } from "node:fs";
import { messageOf } from "../../../base/errors.ts";
import { fieldsOf, jsonOf } from "../../../base/fields.ts";
import type { ExplainRefusal } from "../../../rehearsal/explanation.ts";
import { printExplanation } from "../../explain/print.ts";
import { EXPLAIN_OPTIONS, EXPLAIN_REST, questionOf } from "../../explain/words.ts";
import { adminResult } from "../../proxy/admin.ts";
import { RESOURCE, TARGET_OPTIONS } from "../../proxy/proxies.ts";
import { defineCommand } from "../../runner/define-command.ts";
import { CliError, usage } from "../../runner/errors.ts";
import { openProxies } from "../open-proxies.ts";

export const explain = defineCommand({
  name: "explain",
  summary: "Explain what the proxy would do with a request, without sending it",
  description: [
    "The proxy rehearses the request on its configuration in effect: routes, policies and backends are the real ones, but nothing leaves it, and no token of a rate limit is taken. Where the outcome depends on what it cannot know, such as a service that a policy calls, each outcome is shown, or only the assumed one (--assume extAuthz=deny).",
    "The request is written as for curl: [METHOD] URL, -X, -H, -d, -A, -u. Exits with 1 if the gateway refuses it in every outcome.",
  ],
  argument: RESOURCE,
  rest: EXPLAIN_REST,
  options: {
    ...TARGET_OPTIONS,
    ...EXPLAIN_OPTIONS,
    config: {
      type: "text",
      value: "file",
      completes: "file",
      summary: "Explain with this configuration in place of the one in effect; it cannot name files or variables",
    },
  },
  examples: [
    { does: "Which route a request gets, and why", run: "explain -- http://shop.example/cart" },
    { does: "In a cluster", run: "explain gateway/web -n shop -- POST https://shop.example/cart -H 'x-canary: yes'" },
    { does: "With a change that is not in effect yet", run: "explain --config new.yaml -- http://shop.example/cart" },
    { does: "What clients get while the backend fails", run: "explain --assume response=503 -- http://shop.example/" },
  ],
  async run(invocation, context) {
    const { rest = [], options } = invocation;
    if (rest.length === 0)
      throw usage("explain needs a URL after --", "tgctl explain --local -- http://shop.example/cart");
    const { config } = options;
    const question = {
      ...questionOf(rest, options),
      ...(config !== undefined && {
        config: readConfig(config),
        configName: config === "-" ? "standard input" : config,
      }),
    };
    await using proxies = await openProxies(invocation, context);
    const proxy = await proxies.first();
    const explanation = await adminResult(
      proxy,
      proxy.client.explain(question, { signal: context.signal }),
      badQuestion,
    );
    return await printExplanation(explanation, question.request, context.json || options.output === "json", context);
  },
});

function readConfig(path: string): string {
  try {
    return readFileSync(path === "-" ? 0 : path, "utf8");
  } catch (error) {
    throw new CliError("failure", `cannot read ${path}: ${messageOf(error)}`);
  }
}

/** The proxy says what is wrong with the question, and what to write. */
function badQuestion(status: number, body: string): CliError {
  const { error } = fieldsOf(jsonOf(body)) as Partial<ExplainRefusal>;
  if (error === undefined) return new CliError("failure", `unexpected status code: ${status}`, { why: body });
  const { code, message, hint } = error;
  return code === "question" ? usage(message, hint) : new CliError("failure", message);
}

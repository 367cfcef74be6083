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
    output: {
      type: "text",
      short: "o",
      value: "format",
      choices: ["text", "json"],
      default: "text",
      invalid: (value: string) => `output format "${value}" not supported`,
      summary: "Output format: text is a tree, json is complete",
    },
  },
  examples: [
    { does: "Which route a request gets, and why", run: "explain -- http://shop.example/cart" },
    { does: "In a cluster", run: "explain gateway/web -n shop -- POST https://shop.example/cart -H 'x-canary: yes'" },
    { does: "What clients get while the backend fails", run: "explain --assume response=503 -- http://shop.example/" },
  ],
  async run(invocation, context) {
    const { rest = [], options } = invocation;
    if (rest.length === 0)
      throw usage("explain needs a URL after --", "tgctl explain --local -- http://shop.example/cart");
    const question = questionOf(rest, options);
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

/** The proxy says what is wrong with the question, and what to write. */
function badQuestion(status: number, body: string): CliError {
  try {
    const { error } = JSON.parse(body) as { readonly error: { readonly message: string; readonly hint: string } };
    return usage(error.message, error.hint);
  } catch {
    return new CliError("failure", `unexpected status code: ${status}`, { why: body });
  }
}

import { isScope, SCOPES } from "../../../cel/variables/scopes.ts";
import type { AskedExpression, Evaluation } from "../../../rehearsal/evaluate.ts";
import { evaluatedLines } from "../../../report/evaluated.ts";
import { lackText } from "../../../report/supply-text.ts";
import { badQuestion, EXPLAIN_OPTIONS, knownWords } from "../../explain/words.ts";
import { askReplicas } from "../../merge/ask-replicas.ts";
import { MERGES } from "../../merge/merges.ts";
import { adminResult, type ProxyAdmin } from "../../proxy/admin.ts";
import { RESOURCE, TARGET_OPTIONS } from "../../proxy/proxies.ts";
import { type Context, write, writeJson } from "../../runner/context.ts";
import { defineCommand } from "../../runner/define-command.ts";
import { usage } from "../../runner/errors.ts";
import { openProxies } from "../open-proxies.ts";

export const evaluate = defineCommand({
  name: "eval",
  summary: "Evaluate an expression for a request, and show the value of every part of it",
  description: [
    'The proxy evaluates the CEL expression with the functions of its configuration in effect, for a request that is written as for tgctl explain, or for a recorded one (--id). Nothing is sent. What policies would set, such as jwt, can be assumed: --assume \'jwt={"sub":"alice"}\'.',
    "In a cluster, all pods are asked, and the first answer counts: pods with the same configuration answer alike.",
    "Exits with 1 if the expression has no value, because it fails or depends on what is not known.",
  ],
  argument: {
    name: "expression|resource",
    many: true,
    required: true,
    summary: `The expression; after it the resource, which is ${RESOURCE.summary}`,
  },
  rest: {
    name: "[method] url",
    summary: "The request; with --id what its record does not have, such as -H 'name: value'",
  },
  options: {
    ...TARGET_OPTIONS,
    assume: EXPLAIN_OPTIONS.assume,
    source: EXPLAIN_OPTIONS.source,
    id: { type: "text", value: "id", summary: "A recorded request: its id, its trace id, or the number of its record" },
    scope: {
      type: "text",
      value: "scope",
      choices: Object.keys(SCOPES),
      default: "request",
      summary: "What the expression is for: record is the where of recorded requests",
    },
    output: { ...EXPLAIN_OPTIONS.output, summary: "Output format: text has a line for each part, json is complete" },
  },
  examples: [
    {
      does: "Why a rule is not met",
      run: `eval 'request.path.startsWith("/cart") && jwt.sub == "alice"' --assume 'jwt={"sub":"bob"}' -- http://shop.example/cart`,
    },
    {
      does: "Try a filter on a recorded request",
      run: "eval 'response.code >= 500 && attempts > 1' --scope record --id 0-1734",
    },
    { does: "In a cluster", run: `eval 'request.host' gateway/web -n shop -- http://shop.example/` },
  ],
  async run({ words, rest, options }, context) {
    const [expression = "", resource, more] = words;
    if (more !== undefined) throw usage(`what is ${more}? Only the resource follows the expression`);
    const { id, scope } = options;
    const question: AskedExpression = {
      expression,
      ...(isScope(scope) && { scope }),
      ...knownWords(id, rest ?? [], options),
    };
    await using proxies = await openProxies({ argument: resource, options }, context);
    const ask = (proxy: ProxyAdmin): Promise<Evaluation> =>
      adminResult(proxy, proxy.client.evaluate(question, { signal: context.signal }), badQuestion);
    // Of several pods, only one has the request.
    const { answers, failure } = await askReplicas(proxies, context, ask);
    if (id === undefined && failure !== undefined) await write(context.stderr, `${failure.message}\n`);
    const evaluation = MERGES["/expression"].merge(answers, NO_QUERY);
    return await print(question, evaluation, context.json || options.output === "json", context);
  },
});

const NO_QUERY = new URLSearchParams();

async function print(
  { expression }: AskedExpression,
  evaluation: Evaluation,
  json: boolean,
  context: Context,
): Promise<number> {
  const { type, problem, needs = [] } = evaluation;
  if (json) await writeJson(context, evaluation);
  else if (type === undefined) throw usage(problem?.message ?? "the expression does not compile");
  else {
    const { writeLines } = await import("../../runner/screen.ts");
    const lines = evaluatedLines(expression, evaluation);
    await writeLines(context, [
      ...lines.map(({ depth, text, value }) => ({ depth, text: `${text} → ${value}` })),
      ...needs.map((need) => ({ depth: 0, text: lackText(need) })),
    ]);
  }
  if (type === undefined) return 2;
  return "value" in evaluation ? 0 : 1;
}

import { printExplanation } from "../../explain/print.ts";
import {
  areRequest,
  badQuestion,
  EXPLAIN_OPTIONS,
  EXPLAIN_REST,
  questionOf,
  recordedQuestionOf,
} from "../../explain/words.ts";
import { adminResult } from "../../proxy/admin.ts";
import { RESOURCE, TARGET_OPTIONS } from "../../proxy/proxies.ts";
import { defineCommand } from "../../runner/define-command.ts";
import { usage } from "../../runner/errors.ts";
import { openProxies } from "../open-proxies.ts";
import { readConfig } from "../read-config.ts";
import { explainRecorded, recordedWords } from "./explain-recorded.ts";

export const explain = defineCommand({
  name: "explain",
  summary: "Explain what the proxy would do with a request, without sending it, or what it did with one that is over",
  description: [
    "The proxy rehearses the request on its configuration in effect: routes, policies and backends are the real ones, but nothing leaves it, and no token of a rate limit is taken. Where the outcome depends on what it cannot know, such as a service that a policy calls, each outcome is shown, or only the assumed one (--assume extAuthz=deny).",
    "The request is written as for curl: [METHOD] URL, -X, -H, -d, --url-query, -A, -u. Exits with 1 if the gateway refuses it in every outcome.",
    "Without a request after --, the first argument is the id of one that is over: that of the request or its trace, a traceparent, or the number of its record, as in tgctl recent. Its record tells what happened, and a rehearsal of it why. What a record does not hold can be supplied: -H, -d and --url-query after --, --source. In a cluster, all pods are asked.",
  ],
  argument: {
    name: "id|resource",
    many: true,
    summary: `Without a request: its id, and after it the resource; with one only the resource, which is ${RESOURCE.summary}`,
  },
  rest: EXPLAIN_REST,
  options: {
    ...TARGET_OPTIONS,
    ...EXPLAIN_OPTIONS,
    config: {
      type: "list",
      whole: true,
      value: "file",
      completes: "file",
      summary:
        "Explain with this configuration, a file or folder, in place of the one in effect; may be given several times; it cannot name files or variables",
    },
  },
  examples: [
    { does: "Which route a request gets, and why", run: "explain -- http://shop.example/cart" },
    { does: "In a cluster", run: "explain gateway/web -n shop -- POST https://shop.example/cart -H 'x-canary: yes'" },
    { does: "With a change that is not in effect yet", run: "explain --config new.yaml -- http://shop.example/cart" },
    { does: "What clients get while the backend fails", run: "explain --assume response=503 -- http://shop.example/" },
    { does: "Why a request has got 403", run: "explain 0b8f6c1e-7a3d-4c51-9f5e-0d2b6a4c0013 gateway/web -n shop" },
    { does: "With a field that is not recorded", run: "explain 0-1734 -- -H 'x-canary: yes'" },
  ],
  async run(invocation, context) {
    const { rest = [], options, words } = invocation;
    const { config } = options;
    const json = context.json || options.output === "json";
    if (!areRequest(rest)) {
      if (config.length > 0) throw usage("--config is for a request after --");
      const { id, resource } = recordedWords(words);
      return await explainRecorded(
        recordedQuestionOf(id, rest, options),
        { argument: resource, options },
        json,
        context,
      );
    }
    if (words.length > 1) throw usage("with a request after --, only the resource goes before it", words[0]);
    const given = config.length === 0 ? [] : readConfig(config);
    const [first, ...others] = given;
    const question = {
      ...questionOf(rest, options),
      ...(first !== undefined &&
        (others.length > 0 ? { config: given } : { config: first.text, configName: first.name })),
    };
    await using proxies = await openProxies(invocation, context);
    const proxy = await proxies.first();
    const explanation = await adminResult(
      proxy,
      proxy.client.explain(question, { signal: context.signal }),
      badQuestion,
    );
    return await printExplanation(explanation, question.request, json, context);
  },
});

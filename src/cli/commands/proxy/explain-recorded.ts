import type { RecordedQuestion } from "../../../rehearsal/question.ts";
import { printRecorded } from "../../explain/print.ts";
import { badQuestion } from "../../explain/words.ts";
import { newestExplanation } from "../../merge/explanation.ts";
import { adminResult } from "../../proxy/admin.ts";
import { failureOf, type TargetWords } from "../../proxy/proxies.ts";
import type { Context } from "../../runner/context.ts";
import { CliError, usage } from "../../runner/errors.ts";
import { openProxies } from "../open-proxies.ts";

const HINT = "tgctl explain -- http://shop.example/cart, or tgctl explain <id> gateway/web";

/** The id and the resource of a command line without a request. Throws usage errors. */
export function recordedWords(words: readonly string[]): {
  readonly id: string;
  readonly resource: string | undefined;
} {
  const [id, resource, ...others] = words;
  if (id === undefined) throw usage("explain needs a request after --, or the id of one that is over", HINT);
  if (/^\w+:\/\//.test(id)) throw usage("a request goes after --", `tgctl explain -- ${id}`);
  // A resource, and its request is missing. Ids with a slash can be found by the number of their record.
  if (id.includes("/")) throw usage(`${id} is not the id of a request; explain needs one, or a request after --`, HINT);
  if (others.length > 0) throw usage(`what is ${others[0]}? Only the resource follows the id`, HINT);
  return { id, resource };
}

/** Prints what happened to the newest request with an id, at whichever of the proxies has its record. Resolves with the exit code. */
export async function explainRecorded(
  question: RecordedQuestion,
  target: TargetWords,
  json: boolean,
  context: Context,
): Promise<number> {
  await using proxies = await openProxies(target, context);
  const outcomes = await proxies.each((proxy) =>
    adminResult(proxy, proxy.client.explain(question, { signal: context.signal }), badQuestion),
  );
  const newest = newestExplanation(
    outcomes.flatMap(({ pod, result }) =>
      result.status === "fulfilled" ? [{ pod: pod?.name, answer: result.value }] : [],
    ),
  );
  // Of several pods, only one has the request.
  if (newest === undefined) throw failureOf(outcomes) ?? new CliError("failure", "the proxy has sent no record");
  await printRecorded(newest, json, context);
  return 0;
}

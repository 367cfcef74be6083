/** What `tracegate explain` and `tgctl explain` have in common: options, the request after `--`, and mistakes in them. */
import { type Fields, fieldsOf, jsonOf } from "../../base/fields.ts";
import { ASSUME_SUMMARY, readAssumptions, splitAssumption } from "../../rehearsal/assumptions.ts";
import { hasUrl, knownPartsOf, requestOf } from "../../rehearsal/curl.ts";
import type { ExplainRefusal } from "../../rehearsal/explanation.ts";
import { BadFacts, factsOfRequest } from "../../rehearsal/facts.ts";
import { assumedByFile } from "../../rehearsal/named-file.ts";
import type { Question, RecordedQuestion } from "../../rehearsal/question.ts";
import { hintText } from "../../report/supply-text.ts";
import type { OptionSpecs } from "../runner/define-command.ts";
import { CliError, usage } from "../runner/errors.ts";
import { OUTPUT_OPTION } from "../runner/output-option.ts";

export const EXPLAIN_OPTIONS = {
  assume: { type: "list", whole: true, value: "name=value", summary: ASSUME_SUMMARY },
  source: { type: "text", value: "address", summary: "Address of the client (default 127.0.0.1)" },
  output: {
    ...OUTPUT_OPTION,
    choices: ["text", "json"],
    default: "text",
    summary: "Output format: text is a tree, json is complete",
  },
} as const satisfies OptionSpecs;

export const EXPLAIN_REST = { name: "[method] url", summary: "The request" };

/** The question of a command line. Throws usage errors for what is wrong with it whatever the configuration is. */
export function questionOf(
  words: readonly string[],
  { assume, source }: { readonly assume: readonly string[]; readonly source: string | undefined },
): Question {
  try {
    const request = requestOf(words, source);
    factsOfRequest(request);
    const assumed = assumedOf(assume);
    return { request, ...(assume.length > 0 && { assume: assumed }) };
  } catch (error) {
    throw asUsage(error);
  }
}

/** The question about a request that is over, with what its record does not hold. Throws as `questionOf`. */
export function recordedQuestionOf(
  id: string,
  words: readonly string[],
  { assume, source }: { readonly assume: readonly string[]; readonly source: string | undefined },
): RecordedQuestion {
  try {
    return { id, request: knownPartsOf(words, source), assume: assumedOf(assume) };
  } catch (error) {
    throw asUsage(error);
  }
}

/** What is known of a request for an expression: a recorded one with `id`, else the words after `--`, if there are any. Throws as `questionOf`. */
export function knownWords(
  id: string | undefined,
  words: readonly string[],
  options: { readonly assume: readonly string[]; readonly source: string | undefined },
): Question | RecordedQuestion | Pick<Question, "assume"> {
  if (id !== undefined) return recordedQuestionOf(id, words, options);
  if (words.length > 0) return questionOf(words, options);
  try {
    return { assume: assumedOf(options.assume) };
  } catch (error) {
    throw asUsage(error);
  }
}

/** Whether the words after `--` are a request. Throws usage errors. */
export function areRequest(words: readonly string[]): boolean {
  try {
    return hasUrl(words);
  } catch (error) {
    throw asUsage(error);
  }
}

function assumedOf(assume: readonly string[]): Fields {
  const assumed = Object.fromEntries(
    assume.map(splitAssumption).map(([name, value]) => [name, assumedByFile(name, value)]),
  );
  readAssumptions(assumed);
  return assumed;
}

/** A mistake in the request or in what is assumed is one on the command line. */
export function asUsage(error: unknown): unknown {
  return error instanceof BadFacts ? usage(error.message, hintText(error.hint, error.about)) : error;
}

/** The error for a question that the admin server refuses: it says what is wrong with it, and what to write. */
export function badQuestion(status: number, body: string): CliError {
  const { error } = fieldsOf(jsonOf(body)) as Partial<ExplainRefusal>;
  if (error === undefined) return new CliError("failure", `unexpected status code: ${status}`, { why: body });
  const { code, message, hint, about } = error;
  return code === "question" ? usage(message, hintText(hint, about)) : new CliError("failure", message);
}

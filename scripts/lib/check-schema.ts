import type { CaseResult, CheckOutput } from "../../src/main/check-report.ts";
import type { Diagnostic, RelatedPlace } from "../../src/translation/problems/diagnostics.ts";
import { LINTS } from "../../src/translation/problems/lint-table.ts";
import { formatSchema, type JsonSchema } from "./config-schema.ts";
import { type Docs, objectOf, type Words } from "./described-schema.ts";
import { step } from "./explanation-schema.ts";
import { impact } from "./impact-schema.ts";

const text = { type: "string" } as const;
const number = { type: "integer", minimum: 0 } as const;
const yes = { type: "boolean" } as const;
const listOf = (items: object): object => ({ type: "array", items });

const SEVERITIES: Words<Diagnostic["severity"]> = { error: true, warning: true, note: true };

const related: Docs<RelatedPlace> = {
  file: { schema: text, text: "its name, if it is another one than that of the diagnostic", optional: true },
  line: { schema: number, text: "from 1" },
  column: { schema: number, text: "from 1" },
  path: { schema: text, text: "of the value there" },
  message: { schema: text, text: "what it is, such as: wins instead" },
};

const diagnostic: Docs<Diagnostic> = {
  severity: {
    schema: { enum: Object.keys(SEVERITIES) },
    text: "error: the configuration is not valid; note: valid, and often intended",
  },
  file: { schema: text, text: "its name, or what stands for it" },
  line: { schema: number, text: "from 1; 0 if the problem has no place in the file" },
  column: { schema: number, text: "from 1; 0 if the problem has no place in the file" },
  path: { schema: text, text: "of the value, such as binds[0].port; empty for the whole file" },
  message: { schema: text, text: "what is wrong" },
  remedy: { schema: text, text: "what to do about it, unless the message says so", optional: true },
  lint: {
    schema: { enum: Object.keys(LINTS) },
    text: "of a finding in a valid configuration, see docs/lints.md",
    optional: true,
  },
  related: { schema: listOf(objectOf(related)), text: "places that explain a finding", optional: true },
  expected: { schema: text, text: "what to write instead", optional: true },
  suggestion: { schema: text, text: "the value or name that was probably meant", optional: true },
  invalidCertificate: {
    schema: text,
    text: "digest of a certificate that has expired or is not valid yet",
    optional: true,
  },
  source: { schema: text, text: "the line of the file; absent if it might show a secret", optional: true },
};

const summary: Docs<NonNullable<CheckOutput["summary"]>> = {
  binds: { schema: number, text: "addresses that are listened on" },
  listeners: { schema: number, text: "listeners of all binds" },
  routes: { schema: number, text: "HTTP routes, those of route groups included" },
  tcpRoutes: { schema: number, text: "routes of TCP, TLS and UDP" },
  backends: { schema: number, text: "backends that routes use" },
};

const shown = { type: ["string", "number", "null"] } as const;
const difference: Docs<CaseResult["failures"][number]["differences"][number]> = {
  field: { schema: text, text: "of the expectation, such as sent.headers.x-user" },
  expected: { schema: shown, text: "null: nothing" },
  actual: { schema: shown, text: "what came instead; secrets are redacted" },
};

const failure: Docs<CaseResult["failures"][number]> = {
  given: { schema: { type: "object" }, text: "what is assumed or chosen in this outcome" },
  differences: { schema: listOf(objectOf(difference)), text: "fields that came out differently" },
  why: { schema: listOf({ $ref: "#/$defs/step" }), text: "what decided" },
};

const problem: Docs<NonNullable<CaseResult["problem"]>> = {
  message: { schema: text, text: "what is wrong, and what to write" },
  line: { schema: number, text: "of what is wrong, from 1" },
  column: { schema: number, text: "from 1" },
};

const result: Docs<CaseResult> = {
  name: { schema: text, text: "of the case" },
  line: { schema: number, text: "of the case in its file, from 1" },
  column: { schema: number, text: "from 1" },
  ok: { schema: yes, text: "it passed" },
  failures: { schema: listOf(objectOf(failure)), text: "outcomes that differ from what is expected" },
  open: {
    schema: { type: "object", additionalProperties: { type: "array" } },
    text: "what the result depends on, by name, with the values that outcomes have: what the case has to assume",
  },
  problem: { schema: objectOf(problem), text: "why it has no result as it is written", optional: true },
};

const output: Docs<CheckOutput> = {
  ok: { schema: yes, text: "the configuration is valid, and all cases passed" },
  diagnostics: { schema: listOf(objectOf(diagnostic)), text: "problems of the configuration and of the file of cases" },
  startOnly: {
    schema: listOf(text),
    text: "fields that the file sets and that only a restart changes",
    optional: true,
  },
  notFetched: { schema: listOf(text), text: "documents that were not checked, because of --offline", optional: true },
  summary: {
    schema: objectOf(summary),
    text: "numbers of objects; absent if the configuration is not valid",
    optional: true,
  },
  cases: { schema: listOf(objectOf(result)), text: "results of --expect, in the order of the file", optional: true },
  impact: { schema: objectOf(impact), text: "of --impact, see docs/impact.md", optional: true },
};

/** The text of schema/check.json. */
export function checkSchema(): string {
  return formatSchema({
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "tracegate check",
    ...objectOf(output),
    $defs: { step: objectOf(step) },
  } as JsonSchema);
}

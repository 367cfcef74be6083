import type { Lack } from "../../src/rehearsal/choices.ts";
import type { ExplainedOutcome, Explanation } from "../../src/rehearsal/explanation.ts";
import type { Step } from "../../src/trace/steps.ts";
import { formatSchema, type JsonSchema } from "./config-schema.ts";
import { type Docs, objectOf, type Words } from "./described-schema.ts";

const text = { type: "string" } as const;
const data = { type: "object" } as const;

const KINDS: Words<Step["kind"]> = {
  connection: true,
  challenge: true,
  listener: true,
  route: true,
  group: true,
  policy: true,
  shadow: true,
  rule: true,
  expression: true,
  backend: true,
  request: true,
  endpoint: true,
  response: true,
};
const RESULTS: Words<Step["result"]> = { yes: true, no: true, unknown: true, skipped: true, notReached: true };

const STEPS = { type: "array", items: { $ref: "#/$defs/step" } } as const;

export const step: Docs<Step> = {
  kind: { schema: { enum: Object.keys(KINDS) }, text: "what decided or was chosen" },
  name: { schema: text, text: "its name for people, or its expression" },
  key: {
    schema: text,
    text: "only of a route, or a listener that lost: its key, as in the dump of the configuration",
    optional: true,
  },
  result: {
    schema: { enum: Object.keys(RESULTS) },
    text: "yes: passed, was chosen, is true or in force; unknown: depends on what is not known; notReached: comes after the end",
  },
  reason: { schema: text, text: "why, as text", optional: true },
  values: {
    schema: {
      type: "array",
      items: { type: "object", properties: { text, value: {}, error: text }, required: ["text"] },
    },
    text: "parts of an expression with their values, redacted",
    optional: true,
  },
  origin: {
    schema: data,
    text: "where it was written: a path in the file, or an object and a path in it",
    optional: true,
  },
  headers: {
    schema: { type: "object", additionalProperties: text },
    text: "fields of a request or response, redacted",
    optional: true,
  },
  steps: { schema: STEPS, text: "what it consists of, or what lost against it" },
  omitted: {
    schema: { type: "integer" },
    text: "how many more routes lost, which are not among steps",
    optional: true,
  },
};

const SUPPLIES: Words<NonNullable<Lack["supply"]>["kind"]> = {
  field: true,
  parameter: true,
  url: true,
  body: true,
  source: true,
  assumption: true,
  request: true,
  record: true,
  trace: true,
  setting: true,
};

const lack: Docs<Lack> = {
  what: { schema: text, text: "for people" },
  supply: {
    schema: { type: "object", properties: { kind: { enum: Object.keys(SUPPLIES) } }, required: ["kind"] },
    text: "what would make it known, with the name of the field, parameter or assumption",
    optional: true,
  },
  choice: { schema: text, text: "the choice in given that is made because of it", optional: true },
};

const outcome: Docs<ExplainedOutcome> = {
  given: { schema: data, text: "what was assumed, and what was chosen because it is not known" },
  share: { schema: { type: "number" }, text: "share of requests that get this outcome, by the weights of backends" },
  needs: {
    schema: { type: "array", items: objectOf(lack) },
    text: "what is not known, though the outcome depends on it",
    optional: true,
  },
  refused: { schema: { type: "boolean" }, text: "the gateway itself responds with an error, or closes the connection" },
  listener: { schema: text, text: "name of the listener", optional: true },
  route: { schema: text, text: "namespace and name of the route", optional: true },
  endpoint: { schema: text, text: "host and port", optional: true },
  status: { schema: { type: "integer" }, text: "of the response; absent without one", optional: true },
  reason: { schema: text, text: "as in metrics; Upstream if the response is the backend's", optional: true },
  error: { schema: text, text: "as in the access log, without its origin, which a step has", optional: true },
  unlike: {
    schema: { enum: ["route", "decision"] },
    text: "of a request that is over: with what is recorded it would get another route or decision, so something that is not recorded decided",
    optional: true,
  },
  steps: { schema: STEPS, text: "what happens, in its order" },
};

const explanation: Docs<Explanation> = {
  generation: {
    schema: { type: ["integer", "null"] },
    text: "number of the gateway's configuration in effect; null for another one",
  },
  record: {
    schema: data,
    text: "of the request, if it is over, as GET /requests has it; its generation was in effect then",
    optional: true,
  },
  alike: {
    schema: { type: "integer", minimum: 2 },
    text: "how many requests with its id have records, of which this is the newest",
    optional: true,
  },
  question: {
    schema: data,
    text: "of a request that is over: what to ask to learn what would happen to such a request; what matters and is not recorded is redacted in it",
    optional: true,
  },
  outcomes: { schema: { type: "array", items: { $ref: "#/$defs/outcome" } }, text: "one for each choice that is open" },
  omitted: {
    schema: { type: "integer", minimum: 1 },
    text: "at least as many more outcomes were not tried, because there are too many",
    optional: true,
  },
};

/** The text of schema/explanation.json. */
export function explanationSchema(): string {
  return formatSchema({
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "tracegate explanation",
    ...objectOf(explanation),
    $defs: { outcome: objectOf(outcome), step: objectOf(step) },
  } as JsonSchema);
}

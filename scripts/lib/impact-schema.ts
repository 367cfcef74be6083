import type { PreviewProblem } from "../../src/admin/client/controller-client.ts";
import type { KeptPreview } from "../../src/cli/cluster/preview.ts";
import type { ChangeClass } from "../../src/impact/difference.ts";
import type { Example } from "../../src/impact/example.ts";
import type { Change, Decided, Impact, Tally } from "../../src/impact/impact.ts";
import { formatSchema, type JsonSchema } from "./config-schema.ts";
import { type Docs, objectOf, type Words } from "./described-schema.ts";

const text = { type: "string" } as const;
const yes = { type: "boolean" } as const;
const listOf = (items: object): object => ({ type: "array", items });

const CLASSES: Words<ChangeClass> = {
  granted: true,
  refused: true,
  maybeGranted: true,
  maybeRefused: true,
  movedRoute: true,
  movedBackend: true,
  changedOnTheWay: true,
  unknown: true,
};

const tally: Docs<Tally> = {
  requests: {
    schema: { type: "number", minimum: 0 },
    text: "that the samples stand for; not a whole number if backends are chosen by weight",
  },
  samples: { schema: { type: "integer", minimum: 0 }, text: "of these requests" },
};

const decided: Docs<Decided> = {
  refused: { schema: yes, text: "the gateway responds with an error, or closes the connection" },
  route: { schema: text, text: "namespace/name", optional: true },
  backend: { schema: text, text: "the one that gets the request", optional: true },
  status: { schema: { type: "integer" }, text: "of the gateway's own response", optional: true },
  code: { schema: text, text: "of the error, see docs/errors.md", optional: true },
  policy: { schema: text, text: "the one that refuses", optional: true },
  origin: {
    schema: { type: "object" },
    text: "where what refuses was written: a path in the file, or an object and a path in it",
    optional: true,
  },
};

const example: Docs<Example> = {
  time: { schema: text, text: "ISO 8601" },
  method: { schema: text, text: "of the request" },
  authority: { schema: text, text: "the host, with its port if it has one" },
  target: { schema: text, text: "path and query; secret values are redacted" },
  request: {
    schema: { type: "object" },
    text: "the sample as `request` of a question to POST /explain, without a body; absent if it is long, or the head of a tunnel",
    optional: true,
  },
};

const change: Docs<Change> = {
  class: { schema: { enum: Object.keys(CLASSES) }, text: "how the requests change, see docs/impact.md" },
  ...tally,
  before: { schema: objectOf(decided), text: "what happens to them now" },
  after: { schema: objectOf(decided), text: "what would happen" },
  parts: {
    schema: listOf(text),
    text: "of changedOnTheWay: what is different, such as path, host, status or the name of a header field",
    optional: true,
  },
  responseParts: {
    schema: listOf(text),
    text: "of changedOnTheWay: what is different in the responses of backends, which are taken to have status 200: status, or the name of a header field",
    optional: true,
  },
  needs: {
    schema: listOf(text),
    text: "what is not known, though it decides: of unknown and of those that begin with maybe; else, whether the requests are refused, as now",
    optional: true,
  },
  examples: { schema: listOf(objectOf(example)), text: "up to 3 of the samples" },
};

const classes = Object.fromEntries([...Object.keys(CLASSES), "unchanged"].map((name) => [name, objectOf(tally)]));

export const impact: Docs<Impact> = {
  ...tally,
  classes: {
    schema: { type: "object", properties: classes, required: Object.keys(classes) },
    text: "every class, also those without requests; a sample counts in several if its backend is chosen by weight",
  },
  changes: { schema: listOf(objectOf(change)), text: "requests that change in the same way, most requests first" },
  incomplete: {
    schema: { const: true },
    text: "there are more changes than are listed; classes has them all",
    optional: true,
  },
};

const problem: Docs<PreviewProblem> = {
  kind: { schema: text, text: "of the object" },
  key: { schema: text, text: "namespace/name" },
  condition: { schema: text, text: "its type, such as Accepted" },
  reason: { schema: text, text: "of the condition" },
  message: { schema: text, text: "of the condition" },
};

const missing: Docs<KeptPreview["missing"][number]> = {
  kind: { schema: text, text: "Secret, ConfigMap or FetchedDocument" },
  key: { schema: text, text: "namespace/name, or the URL of a document" },
};

/** What `tgctl impact -f` adds. */
const objects: Docs<Omit<KeptPreview, "id">> = {
  problems: {
    schema: listOf(objectOf(problem)),
    text: "conditions of the changed objects that would not be met",
  },
  missing: {
    schema: listOf(objectOf(missing)),
    text: "what only the changed objects refer to; it counts as missing",
  },
  ignored: { schema: listOf(text), text: "objects of kinds that the controller does not read" },
};

/** The text of schema/impact.json. */
export function impactSchema(): string {
  return formatSchema({
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "impact of a change",
    ...objectOf({
      ...impact,
      objects: { schema: objectOf(objects), text: "of `tgctl impact -f`", optional: true },
    }),
  } as JsonSchema);
}

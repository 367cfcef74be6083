/**
 * `errorPages` (docs/policies/error-pages.md): gives error responses a body that people or programs can read, in the form that the
 * client accepts. In: pages by status. Out: the same response with another body. Runs on responses of the route and the gateway
 * phase, after the policies that can change the status; also for errors of these policies.
 */

import type { CelEnvironment } from "../../cel/index.ts";
import { isGrpc } from "../../http/grpc-reply.ts";
import { type HttpResponse, removeHeader, setHeader } from "../../http/message/message.ts";
import { latin1 } from "../../http/message/syntax.ts";
import { applied, Decisions, failed, skipped } from "../contract/decisions.ts";
import { within } from "../contract/policy-error.ts";
import type { PolicyContext, PolicyHooks, ResponseSource } from "../contract/types.ts";
import { definePolicy } from "../define/policy.ts";
import { preferred } from "./accept.ts";
import type { ErrorPages, Form } from "./schema.ts";
import { compileTemplate, type Template } from "./template.ts";

const KIND = "errorPages";

/** In the order in which forms are offered. */
const TYPES = { html: "text/html", json: "application/json", text: "text/plain" } as const satisfies Record<
  Form,
  string
>;
const FORMS: readonly Form[] = ["html", "json", "text"];

/** Fields that describe the body that is replaced, not the one that replaces it. */
const OF_BODY = [
  "accept-ranges",
  "content-digest",
  "content-disposition",
  "content-encoding",
  "content-language",
  "content-location",
  "content-md5",
  "content-range",
  "digest",
  "etag",
  "last-modified",
  "repr-digest",
];

type PageDecision =
  | { readonly code: "noPage" | "kept"; readonly status: number; readonly source: ResponseSource }
  | { readonly code: "grpc" | "unaccepted" }
  | {
      readonly code: "page";
      readonly status: number;
      readonly entry: number;
      readonly form: Form;
      readonly bytes: number;
      readonly failures: readonly string[];
    };

const decisions = new Decisions<PageDecision>(KIND, {
  noPage: ({ status, source }) => skipped(`there is no page for status ${status} of ${NAMES[source]}`),
  kept: ({ source }) => skipped(`${NAMES[source]} has written the body`),
  grpc: () => skipped("gRPC has no pages"),
  unaccepted: () => skipped("the client accepts no form of the page"),
  page: ({ status, entry, form, bytes, failures }) => {
    const text = `replaces the body of status ${status} by the ${form} of entry ${entry}, ${bytes} bytes`;
    const data = { status, entry, form, bytes };
    return failures.length === 0
      ? applied(text, data)
      : failed(`${text}, without what failed: ${failures.join("; ")}`, { ...data, failed: failures });
  },
});

const NAMES: Readonly<Record<ResponseSource, string>> = {
  backend: "the backend",
  gateway: "the gateway",
  policy: "a policy or its service",
};

/** A page with its statuses, and its position in the configuration. */
interface Page {
  readonly position: number;
  readonly statuses: ReadonlySet<number>;
  readonly sources: ReadonlySet<ResponseSource>;
  readonly forms: ReadonlyMap<string, { readonly form: Form; readonly template: Template }>;
}

export const errorPages = definePolicy({
  decisions,
  kind: KIND,
  phases: ["gateway", "route"],
  prepare,
  redact: (config) => config,
  // A page may be long, and every trace would repeat it.
  traceView: (config) => config.map((entry) => ({ ...entry, ...lengthsOf(entry) })),
  // The first that fits applies: the inner level knows better what its clients expect.
  merge: (outer, inner) => [...inner, ...outer],
});

/** The forms of an entry as their lengths. */
function lengthsOf(entry: ErrorPages[number]): Readonly<Record<string, string>> {
  return Object.fromEntries(
    FORMS.flatMap((form) => (entry[form] === undefined ? [] : [[form, `${entry[form].length} characters`]])),
  );
}

/** Compiles the pages. Throws a PolicyError, whose path ends with the form, for a page that is not valid. */
function prepare(config: ErrorPages, cel: CelEnvironment): () => PolicyHooks {
  const pages = config.map(
    (entry, position): Page => ({
      position,
      statuses: statusesOf(entry.statuses),
      sources: new Set(entry.from === "both" ? ["gateway", "backend"] : [entry.from]),
      forms: new Map(
        FORMS.flatMap((form) => {
          const text = entry[form];
          if (text === undefined) return [];
          const template = within([position, form], () => compileTemplate(text, form, cel));
          return [[TYPES[form], { form, template }] as const];
        }),
      ),
    }),
  );
  return () => ({
    lastWord: true,
    onResponse(context, response) {
      // Most responses stop here: they are no errors, and nobody traces them.
      if (response.status >= 400 || context.trace !== undefined) replace(pages, context, response);
      return undefined;
    },
  });
}

function statusesOf(written: ErrorPages[number]["statuses"]): ReadonlySet<number> {
  const hundred = (from: number): number[] => Array.from({ length: 100 }, (_, i) => from + i);
  return new Set(written.flatMap((each) => (typeof each === "number" ? each : hundred(each === "4xx" ? 400 : 500))));
}

/** Replaces the body by the page for this response, if there is one. */
function replace(pages: readonly Page[], context: PolicyContext, response: HttpResponse): void {
  const { request, trace, responseSource: source } = context;
  const { status, headers } = response;
  if (isGrpc(request.headers) || isGrpc(headers)) {
    trace?.report(decisions, { code: "grpc" });
    return;
  }
  const fitting = pages.filter(({ statuses }) => statuses.has(status));
  if (source === "policy" && fitting.length > 0) {
    trace?.report(decisions, { code: "kept", status, source });
    return;
  }
  const own = fitting.filter(({ sources }) => sources.has(source));
  // Caches must not give a page to clients that accept another form.
  if (own.length > 0) headers.push("vary", latin1("accept"));
  for (const { position, forms } of own) {
    const type = preferred(request.headers, [...forms.keys()]);
    const chosen = forms.get(type ?? "");
    if (type === undefined || chosen === undefined) continue;
    const { form, template } = chosen;
    const { bytes, failures } = template(() => context.variables);
    for (const name of OF_BODY) removeHeader(headers, name);
    setHeader(headers, "content-type", latin1(form === "json" ? type : `${type}; charset=utf-8`));
    context.responseBody.replace(bytes);
    trace?.report(decisions, { code: "page", status, entry: position, form, bytes: bytes.length, failures });
    return;
  }
  trace?.report(decisions, own.length > 0 ? { code: "unaccepted" } : { code: "noPage", status, source });
}

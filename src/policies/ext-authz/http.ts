import { type Activation, compileExpression, type Expression, toJson, toText } from "../../cel/index.ts";
import type { HeaderList, LocalReply } from "../../http/message.ts";
import type { ExtAuthz, ExtAuthzHttp } from "../../ir/policies.ts";
import type { CallResponse } from "../../upstream/call.ts";
import type { Callout } from "../../upstream/callout.ts";
import { bodyBytes, sendableText } from "../shared/cel-output.ts";
import { FRAMING, type HeaderEdit } from "../shared/header-edits.ts";
import { parsePathAndQuery } from "../shared/target-parts.ts";
import type { PolicyContext } from "../types.ts";
import type { Asker } from "./verdict.ts";

/** An answer that is passed on whole is kept in memory. */
const MAX_ANSWER = 1024 * 1024;
const NO_BYTES = new Uint8Array(0);

/** Asks with a request of the same method. */
export function askHttp(config: ExtAuthz, http: ExtAuthzHttp, callout: Callout): Asker {
  const compile = (text: string | undefined): Expression | undefined =>
    text === undefined ? undefined : compileExpression(text, "request");
  const path = compile(http.path);
  const redirect = compile(http.redirect);
  const ownBody = compile(http.body);
  const added = Object.entries(http.addRequestHeaders).map(
    ([name, text]) => [name.toLowerCase(), compileExpression(text, "request")] as const,
  );
  const metadata = Object.entries(http.metadata).map(
    ([name, text]) => [name, compileExpression(text, "response")] as const,
  );
  const included = new Set(config.includeRequestHeaders.length > 0 ? config.includeRequestHeaders : ["authorization"]);
  const copied = new Set(http.includeResponseHeaders);

  const ask: Asker["ask"] = async (context, body) => {
    const { request, variables } = context;
    const headers = questionHeaders(context, included, added);
    if (body !== undefined) headers.push("x-envoy-auth-partial-body", body.complete ? "false" : "true");
    const target =
      path === undefined ? request : parsePathAndQuery("extAuthz.protocol.http.path", textOfValue(path, variables));
    const answer = await callout.http(
      {
        method: request.method === "CONNECT" ? "GET" : request.method,
        path: target.path + target.search,
        headers,
        body: ownBody !== undefined ? bodyBytes(ownBody.evaluate(variables)) : (body?.bytes ?? NO_BYTES),
        timeoutMs: config.timeout,
        maxBytes: MAX_ANSWER,
      },
      { onCancel: (callback) => context.onOver(callback), observer: context.trace?.outbound("ext_authz") },
    );
    const found = findings(metadata, variables, answer);
    if (answer.status >= 200 && answer.status < 300)
      return { allowed: true, requestEdits: copiedHeaders(answer, copied), responseEdits: [], metadata: found };
    return { allowed: false, reply: refusal(answer, redirect, variables), metadata: found };
  };
  const expressions = [path, redirect, ownBody, ...added.map(([, expression]) => expression)];
  return { expressions: expressions.filter((each) => each !== undefined), ask };
}

function textOfValue(expression: Expression, variables: Activation): string {
  return sendableText(toText(expression.evaluate(variables)) ?? "");
}

/** The request's fields that the service may see, then those that are made for it; one whose expression fails is left out. */
function questionHeaders(
  { request, variables }: PolicyContext,
  included: ReadonlySet<string>,
  added: readonly (readonly [name: string, expression: Expression])[],
): HeaderList {
  const headers: HeaderList = [];
  for (let i = 0; i < request.headers.length; i += 2) {
    const name = request.headers[i] as string;
    if (included.has(name) && !FRAMING.has(name)) headers.push(name, request.headers[i + 1] as string);
  }
  for (const [name, expression] of added) {
    try {
      headers.push(name, textOfValue(expression, variables));
    } catch {
      // The service sees that it is missing.
    }
  }
  return headers;
}

function findings(
  expressions: readonly (readonly [name: string, expression: Expression])[],
  variables: Activation,
  { status, headers, body }: CallResponse,
): Record<string, unknown> | undefined {
  if (expressions.length === 0) return undefined;
  // The variables of the request, which are looked up when they are read, with the answer as `response`.
  const both = Object.create(variables, { response: { value: { status, headers, body } } }) as Activation;
  const found: Record<string, unknown> = {};
  for (const [name, expression] of expressions) {
    try {
      found[name] = toJson(expression.evaluate(both));
    } catch {
      // Expressions that read it see that it is missing.
    }
  }
  return found;
}

function copiedHeaders({ headers }: CallResponse, wanted: ReadonlySet<string>): HeaderEdit[] {
  const edits: HeaderEdit[] = [];
  const seen = new Set<string>();
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i] as string;
    if (!wanted.has(name) || FRAMING.has(name)) continue;
    // The first replaces what the client has sent, others of the name stand beside it.
    edits.push({ action: seen.has(name) ? "add" : "set", name, value: headers[i + 1] as string });
    seen.add(name);
  }
  return edits;
}

function refusal(answer: CallResponse, redirect: Expression | undefined, variables: Activation): LocalReply {
  const { status, headers, body } = answer;
  if (redirect !== undefined && (status === 401 || status === 403))
    return { status: 302, headers: ["location", textOfValue(redirect, variables)], body: "", reason: "ExtAuth" };
  const passed: HeaderList = [];
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i] as string;
    if (!FRAMING.has(name) && name !== "date") passed.push(name, headers[i + 1] as string);
  }
  return { status, headers: passed, body, reason: "ExtAuth" };
}

import type { Activation, CelEnvironment, Expression } from "../../cel/index.ts";
import { copyField, type HeaderList, type LocalReply, setHeader } from "../../http/message/message.ts";
import { latin1 } from "../../http/message/syntax.ts";
import type { CalloutResponse } from "../../upstream/callouts/http-call.ts";
import { FRAMING, type HeaderEdit, isServiceField, NO_PSEUDO } from "../contract/header-edits.ts";
import type { PolicyContext } from "../contract/types.ts";
import { headerRemovals } from "../envoy/convert.ts";
import { callFor } from "../shared/call-for.ts";
import { textOf } from "../shared/expressions.ts";
import { AnswerCache } from "./cache.ts";
import { type AuthzClient, type AuthzDecision, decidedVariables, denialStatus, setsCookie } from "./decision.ts";
import { AuthzRequestTemplate, denies, sizeOf } from "./http-request.ts";
import type { ExtAuthz, ExtAuthzHttp } from "./schema.ts";

const NO_BYTES = new Uint8Array(0);

/**
 * A client for plain HTTP services: sends a request with the same method, path and Authorization unless configured otherwise, and
 * passes every response but 2xx on to the client. Throws CelError for expressions that do not compile.
 */
export function httpClient(config: ExtAuthz, http: ExtAuthzHttp, cel: CelEnvironment): AuthzClient {
  const template = new AuthzRequestTemplate(http, { request: "request", response: "response" }, cel);
  const redirect = http.redirect === undefined ? undefined : cel.compileExpression(http.redirect, "request");
  const included = new Set(config.includeRequestHeaders.length > 0 ? config.includeRequestHeaders : ["authorization"]);
  const copied = new Set(http.includeResponseHeaders);
  const cache = config.cache === undefined ? undefined : new AnswerCache<CalloutResponse>(config.cache, "request", cel);

  const check: AuthzClient["check"] = async (callout, context, body) => {
    const { request, variables } = context;
    const headers = includedHeaders(context, included);
    const added = template.headers(variables);
    // Configured fields replace those of the client, or it could speak for the gateway.
    for (let i = 0; i < added.length; i += 2) setHeader(headers, added[i] as string, latin1(added[i + 1] as string));
    if (body !== undefined) headers.push("x-envoy-auth-partial-body", body.complete ? "false" : "true");
    const lookup = cache?.lookup(variables);
    const own = {
      method: request.method === "CONNECT" ? "GET" : request.method,
      path: request.path + request.search,
      headers,
      body: body?.bytes ?? NO_BYTES,
      timeoutMs: config.timeout,
    };
    const answer = await template.ask(variables, own, callout, callFor(context, "ext_authz"), lookup);
    const metadata = template.metadataFrom(variables, answer);
    const decision: AuthzDecision = denies(answer.status)
      ? { allowed: false, reply: denial(answer, redirect, variables), metadata }
      : { allowed: true, requestEdits: copiedHeaders(answer, copied), responseEdits: [], metadata };
    // A response without its body is not cached.
    if (answer.cut === undefined && !setsCookie(decision))
      lookup?.keep(answer, sizeOf(answer), denialStatus(decision), decidedVariables(context, decision));
    return { decision, cached: lookup?.found === true };
  };
  return {
    expressions: [
      ...(redirect === undefined ? [] : [redirect]),
      ...template.expressions,
      ...(cache === undefined ? [] : cache.expressions),
    ],
    clears: headerRemovals([...copied]),
    check,
  };
}

/** Copies the request's fields that the service may see; never framing, since the body is not the same. */
function includedHeaders({ request }: PolicyContext, included: ReadonlySet<string>): HeaderList {
  const headers: HeaderList = [];
  for (let i = 0; i < request.headers.length; i += 2) {
    const name = request.headers[i] as string;
    if (included.has(name) && !FRAMING.has(name)) copyField(headers, request.headers, i);
  }
  return headers;
}

function copiedHeaders({ headers }: CalloutResponse, wanted: ReadonlySet<string>): HeaderEdit[] {
  const edits: HeaderEdit[] = [];
  const seen = new Set<string>();
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i] as string;
    if (!wanted.has(name) || !isServiceField(name, NO_PSEUDO)) continue;
    // The first replaces what the client sent under this name; repetitions are added to it.
    edits.push({ action: seen.has(name) ? "add" : "set", name, value: latin1(headers[i + 1] as string) });
    seen.add(name);
  }
  return edits;
}

/** The response for the client: a redirect, or that of the service without framing and Date, which the gateway sets itself. */
function denial(answer: CalloutResponse, redirect: Expression | undefined, variables: Activation): LocalReply {
  const { status, headers, body, cut } = answer;
  const location =
    redirect !== undefined && (status === 401 || status === 403) ? placeOf(redirect, variables) : undefined;
  if (location !== undefined) return { status: 302, headers: ["location", location], body: "" };
  const passed: HeaderList = [];
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i] as string;
    // Fields that describe a missing body would be wrong.
    if (cut !== undefined && name.startsWith("content-")) continue;
    if (isServiceField(name, NO_PSEUDO) && name !== "date") copyField(passed, headers, i);
  }
  return { status, headers: passed, body };
}

/** undefined if the expression fails: the denial then has the response of the service. */
function placeOf(redirect: Expression, variables: Activation): string | undefined {
  try {
    return textOf(redirect, variables);
  } catch {
    return undefined;
  }
}

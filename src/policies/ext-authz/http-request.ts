import { type Activation, type CelEnvironment, type Expression, overlaid, type Scope } from "../../cel/index.ts";
import type { HeaderList } from "../../http/message/message.ts";
import { isToken, latin1 } from "../../http/message/syntax.ts";
import { type Callout, type CalloutHead, reasonOf } from "../../upstream/callouts/callout.ts";
import type { CalloutRequest, CalloutResponse } from "../../upstream/callouts/http-call.ts";
import { fieldName } from "../contract/header-edits.ts";
import { PolicyError } from "../contract/policy-error.ts";
import type { CalloutContext } from "../contract/types.ts";
import { bodyBytes, compileAll, evaluateAll, type NamedExpressions, textOf } from "../shared/expressions.ts";
import { checkAuthority, parsePathAndQuery } from "../shared/url-change.ts";
import type { Lookup } from "./cache.ts";
import { AuthzRequestError } from "./decision.ts";
import type { ExtAuthzHttp } from "./schema.ts";

/** Bytes of an authorization response: it may be passed on as a whole and is buffered for that. */
const MAX_RESPONSE = 1024 * 1024;

/** Whether a response with this status denies. The head decides, even if the body then fails. */
export function denies(status: number): boolean {
  return status < 200 || status > 299;
}

/** Approximate size of a cached response in bytes. */
export function sizeOf({ headers, body }: CalloutResponse): number {
  return headers.reduce((sum, text) => sum + text.length, body.length);
}

/** What expressions for the authorization request, and those over its response, may read. */
interface TemplateScopes {
  readonly request: Scope;
  readonly response: Scope;
}

type Pseudo = ":method" | ":path" | ":authority";

/** Fields that set a part of the request line instead of a header; `host` is the older name of `:authority`. */
const PSEUDO: Readonly<Record<string, Pseudo>> = {
  ":method": ":method",
  ":path": ":path",
  ":authority": ":authority",
  host: ":authority",
};

/** The compiled `protocol.http`: makes the parts of authorization requests, for HTTP requests and for connections. */
export class AuthzRequestTemplate {
  readonly #path: Expression | undefined;
  readonly #body: Expression | undefined;
  readonly #added: NamedExpressions;
  readonly #pseudo = new Map<Pseudo, Expression>();
  readonly #metadata: NamedExpressions;

  /** Throws CelError for expressions that do not compile, and PolicyError for fields that cannot be set. */
  constructor(
    { path, body, addRequestHeaders, metadata }: Pick<ExtAuthzHttp, "path" | "body" | "addRequestHeaders" | "metadata">,
    scopes: TemplateScopes,
    cel: CelEnvironment,
  ) {
    const compile = (text: string | undefined): Expression | undefined =>
      text === undefined ? undefined : cel.compileExpression(text, scopes.request);
    this.#path = compile(path);
    this.#body = compile(body);
    const added: [string, Expression][] = [];
    for (const [name, expression] of compileAll(addRequestHeaders, scopes.request, cel)) {
      const pseudo = PSEUDO[name.toLowerCase()];
      if (pseudo === undefined) added.push([requestField(name), expression]);
      else this.#pseudo.set(pseudo, expression);
    }
    this.#added = added;
    this.#metadata = compileAll(metadata, scopes.response, cel);
  }

  /** All expressions, so that the policy waits for a body that one of them reads. */
  get expressions(): readonly Expression[] {
    const named = [...this.#added, ...this.#pseudo, ...this.#metadata].map(([, expression]) => expression);
    return [this.#path, this.#body, ...named].filter((each) => each !== undefined);
  }

  /**
   * Sends the request, or takes the response to the same one from the cache. `own`: the parts that are used where none are configured.
   * Throws AuthzRequestError if an expression fails or its value is not valid.
   */
  ask(
    variables: Activation,
    own: Pick<CalloutRequest, "method" | "path" | "headers" | "body" | "timeoutMs">,
    callout: Callout<CalloutContext>,
    call: Parameters<Callout<CalloutContext>["http"]>[1],
    lookup: Lookup<CalloutResponse> | undefined,
  ): Promise<CalloutResponse> {
    const body = this.#body;
    const authority = this.#authority(variables);
    const configured = {
      method: this.#method(variables) ?? own.method,
      path: this.#target(variables) ?? own.path,
      body: (body && made(() => bodyBytes(body.evaluate(variables)))) ?? own.body,
      ...(authority !== undefined && { authority }),
    };
    const limits = { maxBytes: MAX_RESPONSE, headDecides: denies };
    const recall = lookup && { recall: (head: CalloutHead) => lookup.recall(head) };
    return callout.http({ ...own, ...configured, ...limits }, { ...call, ...recall });
  }

  /** Path and query; undefined = not configured. */
  #target(variables: Activation): string | undefined {
    const path = this.#pseudo.get(":path") ?? this.#path;
    if (path === undefined) return undefined;
    return made(() => {
      const target = parsePathAndQuery(["protocol", "http", "path"], textOf(path, variables));
      return target.path + target.search;
    });
  }

  /** CONNECT is invalid, since it has no path. */
  #method(variables: Activation): string | undefined {
    const expression = this.#pseudo.get(":method");
    if (expression === undefined) return undefined;
    return made(() => {
      const method = textOf(expression, variables);
      if (!isToken(method) || method === "CONNECT") throw new Error(`${JSON.stringify(method)} is not a usable method`);
      return method;
    });
  }

  /** Default: that of the service. */
  #authority(variables: Activation): string | undefined {
    const expression = this.#pseudo.get(":authority");
    if (expression === undefined) return undefined;
    return made(() => {
      const authority = textOf(expression, variables);
      if (authority === "") throw new Error("the expression returns no host");
      checkAuthority(ADDED, authority);
      return authority;
    });
  }

  /** Configured header fields; one whose expression fails is left out, and the service decides what its absence means. */
  headers(variables: Activation): HeaderList {
    const headers: HeaderList = [];
    for (const [name, expression] of this.#added) {
      try {
        headers.push(name, latin1(textOf(expression, variables)));
      } catch {
        // Left out.
      }
    }
    return headers;
  }

  /** What expressions read as `extauthz`; undefined when nothing is configured. */
  metadataFrom(variables: Activation, { status, headers, body }: CalloutResponse): Record<string, unknown> | undefined {
    if (this.#metadata.length === 0) return undefined;
    return evaluateAll(this.#metadata, overlaid(variables, { response: { status, headers, body } }));
  }
}

/** Runs `make`; its errors become AuthzRequestError, which `failureMode: allow` does not excuse. */
function made<Part>(make: () => Part): Part {
  try {
    return make();
  } catch (error) {
    throw new AuthzRequestError(reasonOf(error), { cause: error });
  }
}

const ADDED = ["protocol", "http", "addRequestHeaders"];

/** Checks the name of a configured field. The scheme follows from TLS settings and cannot be chosen per request. */
function requestField(name: string): string {
  if (name.toLowerCase() === ":scheme")
    throw PolicyError.at(ADDED, "the scheme is that of the connection to the service; set policies.backendTLS");
  return fieldName(ADDED, name);
}

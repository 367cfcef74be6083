import { type Activation, type CelEnvironment, type Expression, overlaid, type Scope } from "../../cel/index.ts";
import type { HeaderList } from "../../http/message/message.ts";
import { isToken, latin1 } from "../../http/message/syntax.ts";
import type { TargetParts } from "../../http/message/target.ts";
import { reasonOf } from "../../upstream/callouts/callout.ts";
import type { CalloutResponse } from "../../upstream/callouts/http-call.ts";
import { fieldName } from "../contract/header-edits.ts";
import { PolicyError } from "../contract/policy-error.ts";
import { bodyBytes, compileAll, evaluateAll, type NamedExpressions, textOf } from "../shared/expressions.ts";
import { checkAuthority, parsePathAndQuery } from "../shared/url-change.ts";
import { AuthzRequestError } from "./decision.ts";
import type { ExtAuthzHttp } from "./schema.ts";

/** Bytes of an authorization response: it may be passed on as a whole and is buffered for that. */
export const MAX_RESPONSE = 1024 * 1024;

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

  /** Path and query; undefined = not configured. Throws AuthzRequestError if the expression fails or returns no path. */
  target(variables: Activation): TargetParts | undefined {
    const path = this.#pseudo.get(":path") ?? this.#path;
    if (path === undefined) return undefined;
    return made(() => parsePathAndQuery(["protocol", "http", "path"], textOf(path, variables)));
  }

  /** Method; undefined = not configured. CONNECT is invalid, since it has no path. Throws like `target`. */
  method(variables: Activation): string | undefined {
    const expression = this.#pseudo.get(":method");
    if (expression === undefined) return undefined;
    return made(() => {
      const method = textOf(expression, variables);
      if (!isToken(method) || method === "CONNECT") throw new Error(`${JSON.stringify(method)} is not a usable method`);
      return method;
    });
  }

  /** Host; undefined = that of the service. Throws like `target`. */
  authority(variables: Activation): string | undefined {
    const expression = this.#pseudo.get(":authority");
    if (expression === undefined) return undefined;
    return made(() => {
      const authority = textOf(expression, variables);
      if (authority === "") throw new Error("the expression returns no host");
      checkAuthority(ADDED, authority);
      return authority;
    });
  }

  /** Body; undefined = not configured. Throws like `target`. */
  body(variables: Activation): Uint8Array | undefined {
    const expression = this.#body;
    return expression === undefined ? undefined : made(() => bodyBytes(expression.evaluate(variables)));
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

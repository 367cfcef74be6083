import { type Activation, compileExpression, type Expression, type Scope } from "../../cel/index.ts";
import type { TargetParts } from "../../http/h1/target.ts";
import type { HeaderList } from "../../http/message.ts";
import type { ExtAuthzHttp } from "../../ir/policies.ts";
import type { CallResponse } from "../../upstream/call.ts";
import { reasonOf } from "../../upstream/callout.ts";
import { fieldName } from "../shared/header-edits.ts";
import { compileAll, evaluateAll, type NamedExpressions, textOf } from "../shared/named-expressions.ts";
import { parsePathAndQuery } from "../shared/target-parts.ts";
import { QuestionError } from "./verdict.ts";

/** An answer that is passed on whole is kept in memory. */
export const MAX_ANSWER = 1024 * 1024;

/** What expressions of a question may read, and those over its answer. */
export interface QuestionScopes {
  readonly question: Scope;
  readonly answer: Scope;
}

/** What `protocol.http` says of a question, whether it is about a request or a connection. */
export class HttpQuestion {
  readonly #kind: string;
  readonly #path: Expression | undefined;
  readonly #added: NamedExpressions;
  readonly #metadata: NamedExpressions;

  /** Throws CelError for expressions that cannot be used, and an Error that begins with `kind` for fields that cannot be set. */
  constructor(
    kind: string,
    { path, addRequestHeaders, metadata }: Pick<ExtAuthzHttp, "path" | "addRequestHeaders" | "metadata">,
    scopes: QuestionScopes,
  ) {
    this.#kind = kind;
    this.#path = path === undefined ? undefined : compileExpression(path, scopes.question);
    this.#added = compileAll(addRequestHeaders, scopes.question).map(
      ([name, expression]) => [questionField(kind, name), expression] as const,
    );
    this.#metadata = compileAll(metadata, scopes.answer);
  }

  get expressions(): readonly Expression[] {
    const named = [...this.#added, ...this.#metadata].map(([, expression]) => expression);
    return this.#path === undefined ? named : [this.#path, ...named];
  }

  /** undefined = none is configured. Throws QuestionError for an expression that fails or gives no path. */
  target(variables: Activation): TargetParts | undefined {
    const path = this.#path;
    if (path === undefined) return undefined;
    return made(() => parsePathAndQuery(`${this.#kind}.protocol.http.path`, textOf(path, variables)));
  }

  /** Header fields made for the question; one whose expression fails is left out. */
  headers(variables: Activation): HeaderList {
    const headers: HeaderList = [];
    for (const [name, expression] of this.#added) {
      try {
        headers.push(name, textOf(expression, variables));
      } catch {
        // The service sees that it is missing.
      }
    }
    return headers;
  }

  /** What expressions read as `extauthz`; undefined when nothing is configured. */
  findings(variables: Activation, { status, headers, body }: CallResponse): Record<string, unknown> | undefined {
    if (this.#metadata.length === 0) return undefined;
    // The variables of the question, which are looked up when they are read, with the answer as `response`.
    const both = Object.create(variables, { response: { value: { status, headers, body } } }) as Activation;
    return evaluateAll(this.#metadata, both);
  }
}

/** What `make` makes of a request or connection; throws QuestionError when it cannot. */
export function made<Part>(make: () => Part): Part {
  try {
    return make();
  } catch (error) {
    throw new QuestionError(reasonOf(error), { cause: error });
  }
}

/** Host is the service's own, as its address says. */
function questionField(kind: string, name: string): string {
  const where = `${kind}.protocol.http.addRequestHeaders`;
  const lower = fieldName(where, name);
  if (lower === "host")
    throw new Error(`${where}: Host is that of the service; use another name, such as X-Forwarded-Host`);
  return lower;
}

/** The value of an expression, and of each of its parts, for a request that somebody writes or that is over. Nothing is rehearsed. */
import { type Fields, isObject } from "../base/fields.ts";
import { SECRET_PARAMETERS } from "../base/redaction.ts";
import type { Names } from "../base/sensitive-names.ts";
import {
  type Activation,
  Budget,
  CelEnvironment,
  CelError,
  isScope,
  type Need,
  type RequestParts,
  type ResponseParts,
  SCOPES,
  type Scope,
  type Unknowns,
  unknown,
} from "../cel/index.ts";
import type { RequestRecord } from "../recorder/records.ts";
import { certificatesIn } from "../tls/assumed-certificate.ts";
import { ClientCertificate } from "../tls/client-certificate.ts";
import type { PartResult } from "../trace/events.ts";
import { RequestSecrets } from "../trace/secrets.ts";
import { ASSUMPTIONS, type AssumptionName, type Assumptions, readAssumptions } from "./assumptions.ts";
import { Choices } from "./choices.ts";
import { BadFacts, factsOfRequest, type RequestFacts } from "./facts.ts";
import { factsOf } from "./happened.ts";
import { type Question, type RecordedQuestion, readQuestion } from "./question.ts";
import { UnknownFacts } from "./unknown-facts.ts";

/** What to evaluate, and for what: a request as in `Question`, one that is over as in `RecordedQuestion`, or nothing that is known. */
interface ExpressionQuestion {
  readonly expression: string;
  readonly scope: Scope;
  readonly about: Pick<Question, "request" | "assume"> | RecordedQuestion | Pick<Question, "assume">;
}

/** An `ExpressionQuestion` as JSON has it. */
export interface AskedExpression {
  readonly expression: string;
  /** Default: `request`. */
  readonly scope?: Scope;
  readonly id?: string;
  readonly request?: Question["request"] | RecordedQuestion["request"];
  readonly assume?: Fields;
}

/** An expression with its value. Secrets are redacted as in traces. */
export interface Evaluation extends Pick<EvaluatedPart, "turns" | "moreTurns"> {
  /** The type of the value, as far as it is known before the evaluation; absent: the expression does not compile. */
  readonly type?: string;
  /** JSON; absent if the expression has no value, or a value that is too large. */
  readonly value?: unknown;
  /** Why the expression does not compile, or has no value. */
  readonly problem?: ExpressionProblem;
  /** What is not known, though the value depends on it. */
  readonly needs?: readonly Need[];
  /** The parts that were reached, in the order of the text. Parts in loops are in the turns. */
  readonly parts: readonly EvaluatedPart[];
}

interface ExpressionProblem {
  /** What is wrong, without its place. */
  readonly what: string;
  /** With the line in question, and a caret below the place. */
  readonly message: string;
  /** From 1 on; absent if it is about the whole expression. */
  readonly line?: number;
  readonly column?: number;
}

export interface EvaluatedPart extends PartResult {
  /** Of its value; absent without one. */
  readonly type?: string;
  /** Of a loop: the first turns. */
  readonly turns?: readonly EvaluatedTurn[];
  /** Of a loop: how many more turns there were until its result was certain. */
  readonly moreTurns?: number;
}

/** One turn of a loop. */
interface EvaluatedTurn {
  /** What the variables of the loop stood for, in their order. */
  readonly variables: readonly {
    readonly name: string;
    /** JSON; absent if it is too large. */
    readonly value?: unknown;
    readonly type?: string;
  }[];
  readonly parts: readonly EvaluatedPart[];
}

/** What the gateway knows for an evaluation. */
interface Surroundings {
  /** `config.customFunctions`. */
  readonly functions: string;
  /** The budget of a request, `config.expressions.perRequest`, in microseconds. */
  readonly perRequest: number;
  /** Lower-case names of the fields whose values are redacted. */
  readonly hidden: Names;
  /** The request that the question names by its id, and what `where` reads of it. */
  readonly recorded: { readonly record: RequestRecord; readonly parts: Activation } | undefined;
}

const EXAMPLE = 'write {"expression": "request.path == \\"/cart\\"", "request": {"url": "http://shop.example/cart"}}';

/** Checks that a value of JSON is a question about an expression. Throws BadFacts. */
export function readExpressionQuestion(value: unknown): ExpressionQuestion {
  if (!isObject(value)) throw new BadFacts("a question is an object", EXAMPLE);
  const { expression, scope = "request", ...about } = value;
  if (typeof expression !== "string") throw new BadFacts("expression: expected a text", EXAMPLE);
  if (typeof scope !== "string" || !isScope(scope))
    throw new BadFacts(`scope: unknown ${JSON.stringify(scope)}`, `write one of ${Object.keys(SCOPES).join(", ")}`);
  if ("config" in about || "configName" in about)
    throw new BadFacts("config: unknown field", "an expression uses the functions of the configuration in effect");
  if ("request" in about || "id" in about) return { expression, scope, about: readQuestion(about) };
  const { assume = {}, ...others } = about;
  const [unknownField] = Object.keys(others);
  if (unknownField !== undefined) throw new BadFacts(`${unknownField}: unknown field`, EXAMPLE);
  if (!isObject(assume)) throw new BadFacts("assume: expected an object", EXAMPLE);
  return { expression, scope, about: { assume } };
}

/** Evaluates an expression, with the budget of a request. Throws BadFacts for what it is evaluated for. */
export function evaluate(question: ExpressionQuestion, around: Surroundings): Evaluation {
  const { expression, scope } = question;
  const secrets = new RequestSecrets(false, around.hidden, SECRET_PARAMETERS);
  const activation = { ...activationOf(question, around), budget: new Budget(around.perRequest) };
  secrets.remember(activation.request?.headers ?? []);
  secrets.remember(activation.response?.headers ?? []);
  try {
    const environment = CelEnvironment.defining(around.functions);
    const { type, error, needs, whole, parts } = environment.examine(expression, scope, activation);
    // Those who ask know what they sent, so only names and values tell what is secret.
    const shown = ({ turns, ...part }: NonNullable<typeof whole>): EvaluatedPart => ({
      ...secrets.part({ ...part, readsMore: false }),
      ...("type" in part.result && { type: part.result.type }),
      ...(turns !== undefined && turnsOf(turns)),
    });
    const turnsOf = (
      turns: NonNullable<NonNullable<typeof whole>["turns"]>,
    ): Pick<EvaluatedPart, "turns" | "moreTurns"> => {
      const more = turns.count - turns.shown.length;
      const evaluated = turns.shown.map(({ variables, parts: own }) => ({
        variables: variables.map(({ name, value: part }) => {
          const { value, type } = part === undefined ? {} : shown(part);
          return { name, ...(value !== undefined && { value }), ...(type !== undefined && { type }) };
        }),
        parts: own.map(shown),
      }));
      return { turns: evaluated, ...(more > 0 && { moreTurns: more }) };
    };
    const result = whole && shown(whole);
    return {
      type: result?.type ?? type,
      ...(result !== undefined && "value" in result && { value: result.value }),
      ...(error !== undefined && needs === undefined && { problem: problemOf(error) }),
      ...(needs !== undefined && { needs }),
      parts: parts.map(shown),
      ...(result?.turns !== undefined && { turns: result.turns }),
      ...(result?.moreTurns !== undefined && { moreTurns: result.moreTurns }),
    };
  } catch (error) {
    if (error instanceof CelError) return { problem: problemOf(error), parts: [] };
    throw error;
  }
}

function problemOf({ what, message, position }: CelError): ExpressionProblem {
  return { what, message, ...(position !== undefined && { line: position.line, column: position.column }) };
}

/** The assumed value of a variable; null: the variable is not set; undefined: nothing is assumed. */
type ValueOf = (assumed: Assumptions) => unknown;

/** The variables that can be assumed, and by which assumption. */
const ASSUMED: Readonly<Record<string, readonly [name: AssumptionName, value: ValueOf]>> = {
  jwt: ["jwt", ({ jwt, oidc }) => clientOf(jwt ?? oidc)],
  apiKey: ["apiKey", ({ apiKey }) => clientOf(apiKey)],
  basicAuth: ["basicAuth", ({ basicAuth }) => clientOf(basicAuth)],
  extauthz: ["extAuthz", ({ extAuthz }) => metadataOf(extAuthz)],
  extproc: ["extProc", ({ extProc }) => metadataOf(extProc)],
  response: ["response", ({ response }) => responseOf(response)],
};
const USED: ReadonlySet<string> = new Set<AssumptionName>([
  ...Object.values(ASSUMED).map(([name]) => name),
  "oidc",
  "clientCertificate",
  "body",
  "time",
  "random",
]);

/** What is known, and what is not. */
function activationOf({ scope, about }: ExpressionQuestion, { hidden, recorded }: Surroundings): Activation {
  const assumed = readAssumptions(about.assume ?? {});
  const unused = Object.keys(assumed).find((name) => !USED.has(name));
  if (unused !== undefined)
    throw new BadFacts(`no variable has the value of ${unused}`, `assume ${[...USED].join(", ")}`, { assume: unused });
  // What a record has is all that `where` can read.
  if (scope === "record" && recorded !== undefined) return recorded.parts;
  const values = Object.entries(ASSUMED).flatMap(([variable, [, value]]) => {
    const known = value(assumed);
    return known === undefined ? [] : [[variable, known ?? undefined] as const];
  });
  const facts = factsOfQuestion(about, recorded);
  const certificate = certificateOf(about, assumed);
  const choices = new Choices();
  choices.begin(assumed, facts?.partly !== undefined);
  const unknowns = new UnknownFacts(choices);
  const partly = facts?.partly && { ...facts.partly, certificate: certificate !== undefined };
  const complete = facts && unknowns.begin({ ...facts, ...(partly && { partly }) }, hidden);
  const known = {
    ...Object.fromEntries(values),
    ...(complete && { request: requestOf(complete), source: sourceOf(complete, certificate) }),
  };
  return { ...known, unknowns: new UnknownVariables(new Set(Object.keys(known)), scope, unknowns) };
}

function factsOfQuestion(
  about: ExpressionQuestion["about"],
  recorded: Surroundings["recorded"],
): RequestFacts | undefined {
  if (!("id" in about)) return "request" in about ? factsOfRequest(withoutCertificate(about.request)) : undefined;
  if (recorded === undefined) return undefined;
  const { record, parts } = recorded;
  const protocol = parts.request?.scheme === "https" ? "tls" : "http";
  const request = about.request && withoutCertificate(about.request);
  const facts = factsOf({ record, ...(request && { request }) }, { protocol, port: 80 });
  if (facts === undefined)
    throw new BadFacts(
      `the record ${about.id} has no whole request`,
      "evaluate it in the scope record, or for another request",
    );
  return facts;
}

/** Nobody shakes hands here, so the certificate needs no key. */
function withoutCertificate<Request extends { readonly certificate?: string | undefined }>(request: Request): Request {
  return { ...request, certificate: undefined };
}

/** The client's certificate, as if a listener had accepted it. */
function certificateOf(about: ExpressionQuestion["about"], assumed: Assumptions): ClientCertificate | undefined {
  const written = "request" in about ? about.request?.certificate : undefined;
  const pem = written ?? assumed.clientCertificate;
  if (pem === undefined) return undefined;
  const bad = new BadFacts("the client's certificate cannot be read", "write PEM that begins with the certificate", {
    request: "certificate",
  });
  try {
    const [own] = certificatesIn(pem);
    if (own !== undefined) return new ClientCertificate(own);
  } catch {
    throw bad;
  }
  throw bad;
}

/** What is not known: variables as a whole, and what a request lacks. */
class UnknownVariables implements Unknowns {
  readonly #known: ReadonlySet<string>;
  readonly #scope: Scope;
  readonly #facts: UnknownFacts;

  constructor(known: ReadonlySet<string>, scope: Scope, facts: UnknownFacts) {
    this.#known = known;
    this.#scope = scope;
    this.#facts = facts;
  }

  at(path: readonly string[], presence: boolean): ReturnType<Unknowns["at"]> {
    const [variable = ""] = path;
    if (this.#known.has(variable) || variable.endsWith("()")) return this.#facts.at(path, presence);
    return unknown([needOf(variable, this.#scope)]);
  }

  decide(): boolean {
    return false;
  }

  standIn<Value>(_needs: readonly Need[], make: () => Value): Value {
    return make();
  }
}

function needOf(variable: string, scope: Scope): Need {
  const what = `the variable ${variable}`;
  if (variable === "request" || variable === "source") return { what: "the request", supply: { kind: "request" } };
  const [name] = ASSUMED[variable] ?? [];
  if (name !== undefined) {
    return { what, supply: { kind: "assumption", name, examples: ASSUMPTIONS[name].values.slice(0, 1) } };
  }
  if (scope === "record") return { what, supply: { kind: "record" } };
  return { what, supply: { kind: "trace" } };
}

function requestOf({ url, method, target, head, body, version }: RequestFacts): RequestParts {
  const [, ...lines] = head.trimEnd().split("\r\n");
  const fields = lines.map((line) => [line.slice(0, line.indexOf(":")).toLowerCase(), fieldValue(line)] as const);
  const at = target.indexOf("?");
  return {
    method,
    scheme: url.protocol.slice(0, -1),
    authority: fields.find(([name]) => name === "host")?.[1] ?? "",
    path: at < 0 ? target : target.slice(0, at),
    search: at < 0 ? "" : target.slice(at),
    version: version === "2" ? "HTTP/2" : "HTTP/1.1",
    headers: fields.filter(([name]) => name !== "host").flat(),
    body,
  };
}

function fieldValue(line: string): string {
  return line.slice(line.indexOf(":") + 1).trim();
}

function sourceOf(
  { source: { address, port } }: RequestFacts,
  client: ClientCertificate | undefined,
): NonNullable<Activation["source"]> {
  const own = { address, port, rawAddress: address, rawPort: port };
  if (client === undefined) return own;
  const { identity, spiffeId, subjectAltNames, issuer, subject, subjectCn, pem: certificate } = client;
  return { ...own, identity, spiffeId, subjectAltNames, issuer, subject, subjectCn, certificate };
}

/** What a credential says about the client; only that it is valid says nothing. */
function clientOf(assumed: Assumptions["jwt"]): unknown {
  if (assumed === "valid") return undefined;
  return typeof assumed === "string" ? null : assumed;
}

function metadataOf(assumed: Assumptions["extAuthz"] | Assumptions["extProc"]): unknown {
  return typeof assumed === "object" ? (assumed.metadata ?? null) : assumed && null;
}

function responseOf(assumed: Assumptions["response"]): ResponseParts | undefined {
  if (typeof assumed !== "object") return undefined;
  const { status = 200, headers = {}, body = "" } = assumed;
  const grpcStatus = headers["grpc-status"];
  return {
    status,
    headers: Object.entries(headers).flat(),
    body: Buffer.from(body),
    ...(grpcStatus !== undefined && { grpcStatus: Number(grpcStatus) }),
  };
}

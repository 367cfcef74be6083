/** Questions to the admin server that this page comes from. */
import { type AdminAnswers, isAnswer, queryOf } from "../src/admin/plane/answers.ts";

/** Why there is no answer, in words that a page shows. */
export class AskError extends Error {
  /** Asking again may help: the server was not reached, or it is busy. */
  readonly passes: boolean;

  constructor(message: string, passes: boolean) {
    super(message);
    this.passes = passes;
  }
}

/** What to ask an endpoint. */
export interface Question {
  /** After the path of an endpoint that ends in `/`. */
  readonly rest?: string;
  readonly query?: object;
  /** Sent as JSON by POST. Default: GET. */
  readonly body?: object;
  readonly signal?: AbortSignal;
}

/**
 * The answer of an endpoint. Paths are relative to the page, so that it also works behind a route with a prefix.
 * @throws AskError
 */
export async function ask<Endpoint extends keyof AdminAnswers>(
  endpoint: Endpoint,
  { rest = "", query = {}, body, signal }: Question = {},
): Promise<AdminAnswers[Endpoint]> {
  const words = queryOf(query).toString();
  const path = `..${endpoint}${encodeURIComponent(rest)}${words === "" ? "" : `?${words}`}`;
  const init: RequestInit = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
  const { status, text } = await receive(path, init, signal);
  const answer = parsed(text);
  if (status === 200 && isAnswer(endpoint, answer)) return answer;
  if (status === 200) throw new AskError(OTHER_VERSION, false);
  throw new AskError(refusalOf(answer) ?? text.trim(), status >= 500);
}

const OTHER_VERSION = "The gateway has another version than this page: load the page again.";

/**
 * A file of JSON beside this page; undefined if it does not exist.
 * @throws AskError also if it is not what `isExpected` tells
 */
export async function askFile<T>(
  name: string,
  isExpected: (value: unknown) => value is T,
  signal: AbortSignal,
): Promise<T | undefined> {
  const { status, text } = await receive(name, {}, signal);
  if (status === 404) return undefined;
  const value = parsed(text);
  if (status === 200 && isExpected(value)) return value;
  if (status === 200) throw new AskError(OTHER_VERSION, false);
  throw new AskError(text.trim(), status >= 500);
}

/** The whole response. Throws AskError without one. */
async function receive(
  path: string,
  init: RequestInit,
  signal: AbortSignal | undefined,
): Promise<{ readonly status: number; readonly text: string }> {
  try {
    const response = await fetch(path, signal === undefined ? init : { ...init, signal });
    return { status: response.status, text: await response.text() };
  } catch (cause) {
    signal?.throwIfAborted();
    throw new AskError(`The gateway does not answer: ${cause instanceof Error ? cause.message : cause}`, true);
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The message of a refusal in JSON, with its hint. */
function refusalOf(answer: unknown): string | undefined {
  if (typeof answer !== "object" || answer === null || !("error" in answer)) return undefined;
  const { error } = answer;
  if (typeof error !== "object" || error === null || !("message" in error)) return undefined;
  const hint = "hint" in error ? `\n${error.hint}` : "";
  return `${error.message}${hint}`;
}

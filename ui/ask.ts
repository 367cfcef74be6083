/** Questions to the admin server that this page comes from. */
import { signal as stateOf } from "@preact/signals";
import { TraceTextParser } from "../src/admin/client/sse.ts";
import { type AdminAnswers, isAnswer, JSON_TYPE, PAGE_TOKEN_HEADER, queryOf } from "../src/admin/plane/answers.ts";
import { type Replica, replicasOf } from "../src/admin/plane/replicas.ts";
import { messageOf } from "../src/base/errors.ts";
import { type Fields, fieldsOf, jsonOf } from "../src/base/fields.ts";
import type { BadPart } from "../src/rehearsal/facts.ts";

/** Why there is no answer, in words that a page shows. */
export class AskError extends Error {
  /** Asking again may help: the server was not reached, or it is busy. */
  readonly passes: boolean;
  /** What is wrong with the question, if it is one of its parts. */
  readonly about: BadPart | undefined;

  constructor(message: string, passes: boolean, about?: BadPart) {
    super(message);
    this.passes = passes;
    this.about = about;
  }
}

/** What failed, where nothing asks again by itself. */
export function lasting(error: unknown): AskError {
  return new AskError(messageOf(error), false);
}

/** What to ask an endpoint. */
export interface Question {
  /** After the path of an endpoint that ends in `/`. */
  readonly rest?: string;
  readonly query?: object;
  /** Sent by POST: a text as it is, anything else as JSON. Default: GET. */
  readonly body?: string | object;
  /** It changes something: it is sent by POST with the token of this page. */
  readonly changes?: true;
  readonly signal?: AbortSignal;
}

/** Milliseconds after which a page says that it waits for an answer. Sooner, the words would only flicker. */
const SHORT = 400;

/** How many questions have waited longer for their answers. */
export const waiting = stateOf(0);

/** The replicas that have been asked last, if `tgctl ui` shows several as one gateway; else none. */
export const replicas = stateOf<readonly Replica[]>([]);

/**
 * The answer of an endpoint. Paths are relative to the page, so that it also works behind a route with a prefix.
 * @throws AskError
 */
export async function ask<Endpoint extends keyof AdminAnswers>(
  endpoint: Endpoint,
  { rest = "", query = {}, body, changes, signal }: Question = {},
): Promise<AdminAnswers[Endpoint]> {
  const words = queryOf(query).toString();
  const path = `..${endpoint}${encodeURIComponent(rest)}${words === "" ? "" : `?${words}`}`;
  const sent = typeof body === "object" ? JSON.stringify(body) : body;
  const init: RequestInit = sent === undefined ? {} : { method: "POST", body: sent };
  const { status, text } = changes === true ? await change(path, signal) : await receive(path, init, signal);
  const answer = jsonOf(text);
  if (status === 200 && isAnswer(endpoint, answer)) {
    const all = replicasOf(answer);
    if (all.length > 0) replicas.value = all;
    return answer;
  }
  if (status === 200) throw new AskError(OTHER_VERSION, false);
  if (status === 403 && (changes === true || endpoint === "/page-token"))
    throw new AskError(`You may not change anything here: ${text.trim()}`, false);
  throw refusalOf(answer) ?? new AskError(text.trim(), PASSING.has(status));
}

/** What this page shows to change something; undefined until it does. */
let pageToken: string | undefined;

/** Sends a POST with the token of this page. A gateway that has been started again gives another one. */
async function change(path: string, signal: AbortSignal | undefined): ReturnType<typeof receive> {
  const send = async (): ReturnType<typeof receive> => {
    pageToken ??= (await ask("/page-token", { body: {} })).token;
    return await receive(path, { method: "POST", headers: { [PAGE_TOKEN_HEADER]: pageToken } }, signal);
  };
  const first = await send();
  if (first.status !== 403) return first;
  pageToken = undefined;
  return await send();
}

/** The gateway is busy or starts, or a proxy before it does not reach it. An internal error would come again. */
const PASSING: ReadonlySet<number> = new Set([502, 503, 504]);
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
  const value = jsonOf(text);
  if (status === 200 && isExpected(value)) return value;
  if (status === 200) throw new AskError(OTHER_VERSION, false);
  throw new AskError(text.trim(), PASSING.has(status));
}

/**
 * More of the code of this page.
 * @throws AskError
 */
export async function askCode<Module>(load: () => Promise<Module>): Promise<Module> {
  const answered = waitLong();
  try {
    return await load();
  } catch {
    // Browsers do not tell a lost connection from a file that is gone.
    throw new AskError(
      "The gateway does not answer, or has another version than this page: should this stay, load the page again.",
      true,
    );
  } finally {
    answered();
  }
}

/**
 * Begins to trace the next request that fits the query; resolves once the gateway waits for it. The events follow as they happen, until the
 * request has ended.
 * @throws AskError, also from the events if the connection breaks
 */
export async function openTrace(query: object, signal: AbortSignal): Promise<AsyncGenerator<Fields>> {
  return await reached(signal, async () => {
    const response = await fetch(addressOf(`../debug/trace?${queryOf(query)}`), { signal });
    const { body, status } = response;
    if (status === 200 && body !== null) return eventsIn(body.pipeThrough(new TextDecoderStream()), signal);
    throw new AskError((await response.text()).trim(), PASSING.has(status));
  });
}

async function* eventsIn(texts: ReadableStream<string>, signal: AbortSignal): AsyncGenerator<Fields> {
  const parser = new TraceTextParser();
  const reader = texts.getReader();
  while (true) {
    const { done, value = "" } = await reached(signal, () => reader.read());
    for (const { raw } of done ? parser.end() : parser.push(value)) yield fieldsOf(jsonOf(raw));
    if (done) return;
  }
}

/** The whole response. Throws AskError without one. */
async function receive(
  path: string,
  init: RequestInit,
  signal: AbortSignal | undefined,
): Promise<{ readonly status: number; readonly text: string }> {
  const answered = waitLong();
  try {
    return await reached(signal, async () => {
      const headers = { ...init.headers, accept: JSON_TYPE };
      const response = await fetch(addressOf(path), { ...init, headers, ...(signal !== undefined && { signal }) });
      return { status: response.status, text: await response.text() };
    });
  } finally {
    answered();
  }
}

/**
 * A path relative to the page as a URL. Without the credentials of a page that was opened as `http://user:password@host/ui/`: browsers
 * refuse to fetch URLs with credentials, and send those that the page was loaded with by themselves.
 */
function addressOf(path: string): string {
  const url = new URL(path, location.href);
  url.username = "";
  url.password = "";
  return url.href;
}

/** What the gateway sends. Throws AskError if the connection fails; the reason of `signal` once that is aborted. */
async function reached<T>(signal: AbortSignal | undefined, receiving: () => Promise<T>): Promise<T> {
  try {
    return await receiving();
  } catch (cause) {
    signal?.throwIfAborted();
    if (cause instanceof AskError) throw cause;
    throw new AskError(`The gateway does not answer: ${cause instanceof Error ? cause.message : cause}`, true);
  }
}

/** Counts a question in `waiting` once it takes long, until the result is called. */
function waitLong(): () => void {
  let counted = 0;
  const timer = setTimeout(() => {
    counted = 1;
    waiting.value++;
  }, SHORT);
  return () => {
    clearTimeout(timer);
    waiting.value -= counted;
  };
}

/** What an `ExplainRefusal` says, with its hint. */
function refusalOf(answer: unknown): AskError | undefined {
  const { message, hint, about } = fieldsOf(fieldsOf(answer).error);
  if (typeof message !== "string") return undefined;
  return new AskError(hint === undefined ? message : `${message}\n${hint}`, false, isPart(about) ? about : undefined);
}

function isPart(about: unknown): about is BadPart {
  const { request, assume } = fieldsOf(about);
  return typeof request === "string" || typeof assume === "string";
}

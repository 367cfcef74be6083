import { type Fields, isObject } from "../base/fields.ts";
import { type NamedText, readTexts } from "../config/parse/config-files.ts";
import { BadFacts, readRequest, type WrittenRequest } from "./facts.ts";

/** What to explain. */
export interface Question {
  readonly request: WrittenRequest;
  /** What a rehearsal cannot know, by name; see `ASSUMPTIONS`. */
  readonly assume?: Fields;
  /** A configuration in place of the one in effect: a text, or several files. */
  readonly config?: string | readonly NamedText[];
  /** How positions in a text call it, such as `new.yaml`; default `configuration`. */
  readonly configName?: string;
}

/** A question about another configuration than the one in effect. */
export type QuestionWithConfiguration = Question & { readonly config: NonNullable<Question["config"]> };

export function bringsConfiguration(question: object): question is QuestionWithConfiguration {
  return "config" in question && question.config !== undefined;
}

/** Which request, that is over, to explain. */
export interface RecordedQuestion {
  /** That of the request, a trace id or `traceparent`, or the number of the record, `<worker>-<number>`. */
  readonly id: string;
  /** What is known of it besides its record. */
  readonly request?: KnownParts;
  /** As in `Question`. */
  readonly assume?: Fields;
}

/** What a record does not hold of a request. */
export interface KnownParts extends Partial<Pick<WrittenRequest, "headers" | "body" | "source" | "certificate">> {
  /** Without `?`. */
  readonly query?: string;
}

/** The configuration of a question is not valid; the message has every problem with its position. */
export class BadConfiguration extends Error {
  readonly problems: string;
  constructor(problems: string) {
    super(`the configuration is not valid\n${problems}`);
    this.problems = problems;
  }
}

const EXAMPLE = 'write {"request": {"url": "http://shop.example/cart"}, "assume": {"extAuthz": "deny"}}';
const RECORDED_EXAMPLE = 'write {"id": "0-17", "request": {"headers": {"x-canary": "yes"}, "query": "page=2"}}';

/** Checks that a value of JSON is a question. Throws BadFacts. */
export function readQuestion(value: unknown): Question | RecordedQuestion {
  if (!isObject(value)) throw new BadFacts("a question is an object", EXAMPLE);
  if ("id" in value) return readRecorded(value);
  const { request, assume = {}, config, configName, ...others } = value;
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) throw new BadFacts(`${unknown}: unknown field`, EXAMPLE);
  if (!isObject(assume)) throw new BadFacts("assume: expected an object", EXAMPLE);
  const given = typeof config === "string" ? config : readTexts(config);
  if (config !== undefined && given === undefined)
    throw new BadFacts(
      "config: expected the text of a configuration, or a list of files",
      'write {"config": "binds: …", "request": {…}}, or {"config": [{"name": "a.yaml", "text": "binds: …"}], …}',
    );
  if (configName !== undefined && typeof configName !== "string")
    throw new BadFacts(
      "configName: expected a text",
      'write {"config": "binds: …", "configName": "new.yaml", "request": {…}}',
    );
  return {
    request: readRequest(request),
    assume,
    ...(given !== undefined && { config: given }),
    ...(configName !== undefined && { configName }),
  };
}

function readRecorded({ id, request, assume = {}, ...others }: Fields): RecordedQuestion {
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) throw new BadFacts(`${unknown}: unknown field`, RECORDED_EXAMPLE);
  if (typeof id !== "string" || id === "") throw new BadFacts("id: expected a text", RECORDED_EXAMPLE);
  if (!isObject(assume)) throw new BadFacts("assume: expected an object", RECORDED_EXAMPLE);
  return { id, assume, ...(request !== undefined && { request: readKnownParts(request) }) };
}

function readKnownParts(value: unknown): KnownParts {
  if (!isObject(value)) throw new BadFacts("request: expected an object", RECORDED_EXAMPLE);
  const { query = "", ...others } = value;
  if (typeof query !== "string" || /[^\x21-\x7e]|^\?/.test(query))
    throw new BadFacts("request.query: expected a query without ?", RECORDED_EXAMPLE);
  for (const name of ["url", "method", "version"])
    if (name in others) throw new BadFacts(`request.${name}: the record has it`, RECORDED_EXAMPLE);
  const { url: _url, ...read } = readRequest({ ...others, url: "" });
  return { ...read, query };
}

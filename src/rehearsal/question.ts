import type { Data } from "./assumptions.ts";
import { BadFacts, readRequest, type WrittenRequest } from "./facts.ts";

/** What to explain. */
export interface Question {
  readonly request: WrittenRequest;
  /** What a rehearsal cannot know, by name; see `ASSUMPTIONS`. */
  readonly assume?: Data;
}

const EXAMPLE = 'write {"request": {"url": "http://shop.example/cart"}, "assume": {"extAuthz": "deny"}}';

/** Checks that a value of JSON is a question. Throws BadFacts. */
export function readQuestion(value: unknown): Question {
  if (!isData(value)) throw new BadFacts("a question is an object", EXAMPLE);
  const { request, assume = {}, ...others } = value;
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) throw new BadFacts(`${unknown}: unknown field`, EXAMPLE);
  if (!isData(assume)) throw new BadFacts("assume: expected an object", EXAMPLE);
  return { request: readRequest(request), assume };
}

function isData(value: unknown): value is Data {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

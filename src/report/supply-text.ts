/** What makes something known, in the words of a command line. */
import { shellWord } from "../base/shell-word.ts";
import type { Supply } from "../cel/index.ts";
import { alternatives } from "../rehearsal/assumptions.ts";
import type { BadPart, Way } from "../rehearsal/facts.ts";

/** Something that is not known, and the options that supply it: `not known: the field x-a; write -H 'x-a: …' with its value`. */
export function lackText({ what, supply }: { readonly what: string; readonly supply?: Supply }): string {
  // A gateway of another version may know further ways.
  const text: string | undefined = supply && optionsFor(supply);
  return text === undefined ? `not known: ${what}` : `not known: ${what}; ${text}`;
}

function optionsFor(supply: Supply): string {
  switch (supply.kind) {
    case "field":
      return supply.name === undefined
        ? "write -H 'name: value' for each"
        : `write -H ${shellWord(`${supply.name}: …`)} with its value`;
    case "parameter":
      return supply.name === undefined
        ? "write --url-query name=value for each parameter"
        : `write --url-query ${shellWord(supply.name)}=… with its value`;
    case "url":
      return "write the URL with them";
    case "body":
      return "write -d BODY or --assume body=TEXT";
    case "source":
      return "write --source ADDRESS";
    case "assumption":
      return assume(supply.examples.map((value) => [supply.name, value]));
    case "request":
      return "write one, or name a recorded one by its id";
    case "record":
      return "name a recorded request by its id";
    case "trace":
      return "look at it in a trace of the request";
    case "setting":
      return `set ${supply.field}`;
  }
}

/** What to write instead of something that is wrong with a question. */
export function hintText<Hint extends string | undefined>(hint: Hint, about: BadPart | undefined): Hint | string {
  if (about === undefined || !("assume" in about) || about.ways === undefined) return hint;
  const { assume: name, value = "", ways } = about;
  if (ways.length > 0) return assume(ways);
  return `leave out --assume ${wordOf([name, value])}, or check which route the request gets`;
}

function assume(ways: readonly Way[]): string {
  return `write --assume ${alternatives(ways.map(wordOf))}`;
}

function wordOf(way: Way): string {
  return shellWord(way.join("="));
}

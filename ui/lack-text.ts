import type { Need, Supply } from "../src/cel/values/need.ts";

/** Something that is not known, and what to write into a form: `the field x-a: write its value`. */
export function lackText({ what, supply }: Need): string {
  const text: string | undefined = supply && fieldFor(supply);
  return text === undefined ? what : `${what}: ${text}`;
}

function fieldFor(supply: Supply): string {
  switch (supply.kind) {
    case "field":
    case "parameter":
      return supply.name === undefined ? "write them" : "write its value";
    case "url":
      return "write the URL with them";
    case "body":
    case "source":
      return "write it";
    case "assumption":
      return `assume ${supply.examples.map((value) => `${supply.name}=${value}`).join(" or ")}`;
    case "request":
      return "write one, or the id of a recorded one";
    case "record":
      return "write the id of a recorded request";
    case "trace":
      return "look at it in a trace of the request";
    case "setting":
      return `set ${supply.field}`;
  }
}

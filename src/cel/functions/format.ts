/** `format`: text with verbs. */
import { adopt, isList, isMap, kindOf, mapGet, mapKeys } from "../values/access.ts";
import { charge } from "../values/budget.ts";
import { formatDuration, formatTimestamp } from "../values/convert.ts";
import { type Failure, fail } from "../values/failure.ts";
import { CelDuration, CelOpaque, CelTimestamp, CelType, CelUint, type CelValue } from "../values/types.ts";

type Text = string | Failure;

/** Steps for each character and each verb of a format, and for each value in it. */
const PER_CHARACTER = 8;
const PER_VERB = 256;
const PER_VALUE = 64;

/** `"%s is %.2f".format([name, number])`. Verbs: s, d, f, e, b, o, x, X, and %% for a percent sign. */
export function formatText(pattern: string, items: readonly CelValue[]): Text {
  charge(pattern.length * PER_CHARACTER);
  let next = 0;
  let text = "";
  let at = 0;
  for (const match of pattern.matchAll(/%(?:(\.\d+)?(.))?/gsu)) {
    text += pattern.slice(at, match.index);
    at = match.index + match[0].length;
    const verb = match[2];
    if (verb === undefined) return fail("a format ends in %; write %% for a percent sign");
    if (verb === "%") {
      text += "%";
      continue;
    }
    if (next >= items.length)
      return fail(`the format has more verbs than the list has values: index ${next} is out of range`);
    const piece = formatVerb(
      verb,
      match[1] === undefined ? undefined : Number(match[1].slice(1)),
      adopt(items[next++]),
    );
    if (typeof piece !== "string") return piece;
    charge(PER_VERB + piece.length * PER_CHARACTER);
    text += piece;
  }
  return text + pattern.slice(at);
}

function formatVerb(verb: string, precision: number | undefined, value: CelValue): Text {
  if (precision !== undefined && precision > 100) return fail("a precision is at most 100");
  switch (verb) {
    case "s":
      return toText(value);
    case "d":
      return typeof value === "number"
        ? Number.isFinite(value)
          ? wrong(verb, value)
          : nonFinite(value)
        : inBase(verb, value, 10);
    case "f":
      return fixed(verb, value, (number) => toFixed(number, precision ?? 6));
    case "e":
      return fixed(verb, value, (number) => number.toExponential(precision ?? 6).replace(/e([+-])(\d)$/, "e$10$2"));
    case "b":
      return typeof value === "boolean" ? String(Number(value)) : inBase(verb, value, 2);
    case "o":
      return inBase(verb, value, 8);
    case "x":
      return hexadecimal(verb, value);
    case "X": {
      const text = hexadecimal(verb, value);
      return typeof text === "string" ? text.toUpperCase() : text;
    }
    default:
      return fail(`unknown verb %${verb} in a format`);
  }
}

function wrong(verb: string, value: CelValue): Failure {
  return fail(`%${verb} cannot show a value of type ${kindOf(value)}`);
}

function nonFinite(value: number): string {
  return Number.isNaN(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity";
}

function inBase(verb: string, value: CelValue, base: number): Text {
  if (typeof value === "bigint") return value.toString(base);
  return value instanceof CelUint ? value.value.toString(base) : wrong(verb, value);
}

function hexadecimal(verb: string, value: CelValue): Text {
  if (typeof value === "string" || value instanceof Uint8Array) charge(value.length * PER_CHARACTER);
  if (typeof value === "string") return Buffer.from(value).toString("hex");
  return value instanceof Uint8Array ? Buffer.from(value).toString("hex") : inBase(verb, value, 16);
}

function fixed(verb: string, value: CelValue, format: (number: number) => string): Text {
  const number = value instanceof CelUint ? Number(value.value) : typeof value === "bigint" ? Number(value) : value;
  if (typeof number !== "number") return wrong(verb, value);
  return Number.isFinite(number) ? format(number) : nonFinite(number);
}

/** Halves go to the even neighbour, as in other implementations; Number.toFixed rounds them up. */
function toFixed(number: number, precision: number): string {
  const digits = number.toFixed(Math.min(100, precision + 40));
  const cut = digits.length - 40 + (precision === 0 ? -1 : 0);
  const isHalf = precision <= 60 && /^\.?50*$/.test(digits.slice(cut));
  return isHalf && /[02468]\.?$/.test(digits.slice(0, cut)) ? digits.slice(0, cut) : number.toFixed(precision);
}

function toText(value: CelValue): Text {
  charge(PER_VALUE);
  if (typeof value === "string") return value;
  if (value === null || typeof value === "boolean" || typeof value === "bigint") return String(value);
  if (typeof value === "number")
    return Number.isFinite(value) ? (Object.is(value, -0) ? "-0" : String(value)) : nonFinite(value);
  if (value instanceof CelUint) return String(value.value);
  if (value instanceof Uint8Array) {
    charge(value.length);
    return Buffer.from(value).toString();
  }
  if (value instanceof CelTimestamp) return formatTimestamp(value);
  if (value instanceof CelDuration) return formatDuration(value);
  if (value instanceof CelType) return value.name;
  if (value instanceof CelOpaque) return value.toString();
  if (isList(value))
    return joined(
      value.map((item) => toText(adopt(item))),
      "[",
      "]",
    );
  if (!isMap(value)) return wrong("s", value);
  const entries = mapKeys(value).map((key) => [toText(key), toText(mapGet(value, key) ?? null)] as const);
  const failed = entries.flat().find((text) => typeof text !== "string");
  if (failed !== undefined) return failed;
  const sorted = entries.sort(([a], [b]) => (a < b ? -1 : 1));
  return joined(
    sorted.map(([key, item]) => `${key}: ${item}`),
    "{",
    "}",
  );
}

function joined(parts: readonly Text[], open: string, close: string): Text {
  const failed = parts.find((part) => typeof part !== "string");
  return failed ?? `${open}${parts.join(", ")}${close}`;
}

import type { Overload } from "../environment/overload.ts";
import type { Type } from "../environment/types.ts";
import { FUNCTIONS } from "../functions/functions.ts";
import { OPERATORS } from "../functions/operators.ts";
import { HeadersView } from "../values/headers.ts";
import { CelMap } from "../values/map.ts";
import { CelDuration, CelOptional, CelSecret, CelTimestamp, CelType, CelUint, type CelValue } from "../values/types.ts";

/** A call of a function with an argument of about `size` characters, bytes or elements. */
export interface LargeCall {
  readonly overload: Overload;
  /** Index of the large argument. */
  readonly position: number;
  /** The kind of value. */
  readonly what: string;
  readonly args: readonly CelValue[];
}

/** Calls of every function and operator that takes texts, bytes, lists, maps or any value. */
export function largeCalls(size: number): readonly LargeCall[] {
  const overloads = [...FUNCTIONS.values(), ...Object.values(OPERATORS)].flat();
  return overloads.flatMap((overload) => callsOf(overload, size));
}

function callsOf(overload: Overload, size: number): LargeCall[] {
  const { params } = overload;
  return params.flatMap((param, position) =>
    large(param, size).map(([what, value]) => ({
      overload,
      position,
      what,
      args: params.map((other, index) => (index === position ? value : smallOf(other))),
    })),
  );
}

const ANY: readonly string[] = ["string", "bytes", "list", "map"];

function large(type: Type, size: number): readonly (readonly [string, CelValue])[] {
  if (type.variable === true || type.name === "dyn") return ANY.flatMap((name) => large({ name, params: [] }, size));
  switch (type.name) {
    case "string":
      return Object.entries(TEXTS).map(([what, text]) => [`text ${what}`, text.repeat(Math.ceil(size / text.length))]);
    case "bytes":
      return Object.entries(TEXTS).map(([what, text]) => [
        `bytes ${what}`,
        Buffer.from(text.repeat(Math.ceil(size / text.length))),
      ]);
    case "list":
      return Object.entries(ELEMENTS).map(([what, make]) => [
        `list of ${what}`,
        Array.from({ length: size }, (_, index) => make(index)),
      ]);
    case "map":
      return [
        ["data", Object.fromEntries(Array.from({ length: size }, (_, index) => [`k${index}`, "v"]))],
        ["map", mapOf(size)],
        [
          "headers",
          new HeadersView({ headers: Array.from({ length: size }, (_, index) => [`k${index}`, "v"]).flat() }),
        ],
        ["a header", new HeadersView({ headers: ["k", "v,".repeat(size / 2), "cookie", "a=b;".repeat(size / 4)] })],
      ];
    case "optional_type":
      return (type.params[0] === undefined ? [] : large(type.params[0], size)).map(([what, value]) => [
        `optional ${what}`,
        new CelOptional(value),
      ]);
    default:
      return [];
  }
}

const TEXTS: Readonly<Record<string, string>> = {
  letters: "a",
  capitals: "A",
  digits: "1",
  spaces: " ",
  accents: "é",
  pairs: "😀",
  quotes: '"',
  percent: "%41",
  verbs: "%s",
  query: "?a=b&c=d",
  values: "a,b",
  lists: "[",
  hours: "1h",
};

const ELEMENTS: Readonly<Record<string, (index: number) => CelValue>> = {
  numbers: BigInt,
  texts: (index) => `text ${index}`,
  doubles: (index) => -index,
  lists: () => ["a"],
  maps: () => ({ a: "b" }),
  optionals: (index) => new CelOptional(BigInt(index)),
};

function mapOf(size: number): CelMap {
  const map = new CelMap();
  for (let index = 0; index < size; index++) map.add(`k${index}`, BigInt(index));
  return map;
}

function smallOf(type: Type): CelValue {
  switch (type.name) {
    case "string":
      return "a";
    case "bytes":
      return Buffer.from("a");
    case "int":
      return 3n;
    case "uint":
      return new CelUint(3n);
    case "double":
      return 3;
    case "bool":
      return true;
    case "list":
      return ["a"];
    case "map":
      return { a: "b" };
    case "optional_type":
      return new CelOptional(type.params[0] === undefined ? "a" : smallOf(type.params[0]));
    case "type":
      return new CelType("int");
    case "google.protobuf.Timestamp":
      return new CelTimestamp(0n);
    case "google.protobuf.Duration":
      return new CelDuration(0n);
    default:
      return new CelSecret("a");
  }
}

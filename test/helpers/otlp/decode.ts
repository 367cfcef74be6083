import { readFileSync } from "node:fs";
import { BinaryReader } from "@bufbuild/protobuf/wire";

type Field = readonly [number: number, kind: string, shape: "one" | "list"];

/** The published messages of OTLP 1.x: field → number, kind and shape. */
const PUBLISHED = JSON.parse(readFileSync(new URL("descriptors.json", import.meta.url), "utf8")) as Readonly<
  Record<string, Readonly<Record<string, Field>>>
>;

/** A message by its published fields: bytes as hexadecimal digits, 64-bit times as bigint, absent fields absent. */
export type Decoded = { readonly [field: string]: Value };
export type Value = string | number | bigint | boolean | Decoded | readonly Value[];

/** Throws for a field that is not published, or has another type on the wire. */
export function decode(type: string, bytes: Uint8Array): Decoded {
  return read(new BinaryReader(bytes), bytes.length, type);
}

function read(reader: BinaryReader, length: number, type: string): Decoded {
  const fields = Object.entries(PUBLISHED[type] ?? {});
  const message: Record<string, Value> = {};
  const end = reader.pos + length;
  while (reader.pos < end) {
    const [number, wireType] = reader.tag();
    const found = fields.find(([, field]) => field[0] === number);
    if (found === undefined) throw new Error(`${type} has no field ${number}`);
    const [name, [, kind, shape]] = found;
    if (wireType !== wireTypeOf(kind)) throw new Error(`${type}.${name} is no ${kind}`);
    const value = readValue(reader, kind);
    message[name] = shape === "list" ? [...((message[name] as Value[] | undefined) ?? []), value] : value;
  }
  return message;
}

function wireTypeOf(kind: string): number {
  if (kind === "fixed64" || kind === "double") return 1;
  if (kind === "fixed32") return 5;
  return ["bool", "enum", "int32", "int64", "uint32"].includes(kind) ? 0 : 2;
}

function readValue(reader: BinaryReader, kind: string): Value {
  switch (kind) {
    case "string":
      return reader.string();
    case "bytes":
      return Buffer.from(reader.bytes()).toString("hex");
    case "bool":
      return reader.bool();
    case "enum":
    case "int32":
      return reader.int32();
    case "uint32":
      return reader.uint32();
    case "int64":
      return Number(reader.int64());
    case "fixed32":
      return reader.fixed32();
    case "fixed64":
      return BigInt(reader.fixed64());
    case "double":
      return reader.double();
    default:
      return read(reader, reader.uint32(), kind);
  }
}

/** `KeyValue`s as an object. */
export function attributesOf(list: Value | undefined): Record<string, unknown> {
  return Object.fromEntries(listOf(list).map(({ key, value }) => [key, anyOf(value as Decoded)]));
}

function anyOf(value: Decoded): unknown {
  const [kind = "", content] = Object.entries(value)[0] ?? [];
  if (kind === "array_value") return listOf((content as Decoded).values).map(anyOf);
  if (kind === "kvlist_value") return attributesOf((content as Decoded).values);
  return kind === "" ? null : content;
}

export function listOf(value: Value | undefined): readonly Decoded[] {
  return (value ?? []) as readonly Decoded[];
}

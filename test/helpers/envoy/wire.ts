import { BinaryReader, BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { readStruct, writeStruct } from "./struct.ts";

/** Kinds of fields that the messages here have; `struct` is google.protobuf.Struct as plain JSON. */
interface Scalars {
  string: string;
  bytes: Uint8Array;
  bool: boolean;
  /** Also enums: the number. */
  int32: number;
  uint32: number;
  /** Numbers beyond 2^53 lose precision. */
  int64: number;
  double: number;
  struct: Readonly<Record<string, unknown>>;
}

type Scalar = keyof Scalars;
type Kind = Scalar | MessageType<Fields>;

/** A field: number, kind, and whether it is one value, a list, or a map from text. */
export type Field = readonly [number: number, kind: Kind, shape?: "list" | "map"];
export type Fields = Readonly<Record<string, Field>>;

type One<K> = K extends Scalar ? Scalars[K] : K extends MessageType<infer F> ? Message<F> : never;
type Value<F extends Field> = F[2] extends "list"
  ? readonly One<F[1]>[]
  : F[2] extends "map"
    ? Readonly<Record<string, One<F[1]>>>
    : One<F[1]>;

/** A message as plain data. A field that is absent has its default on the wire: 0, "", false, nothing. */
export type Message<F extends Fields> = { readonly [Name in keyof F]?: Value<F[Name]> };

/**
 * A protobuf message by its table of fields: field name → number and kind. Only the fields that the gateway uses stand in
 * a table; others are skipped when a message is read.
 */
export class MessageType<F extends Fields> {
  /** As published, such as `envoy.config.core.v3.Address`. */
  readonly name: string;
  readonly fields: F;
  readonly #byNumber: ReadonlyMap<number, readonly [name: string, field: Field]>;

  constructor(name: string, fields: F) {
    this.name = name;
    this.fields = fields;
    this.#byNumber = new Map(Object.entries(fields).map(([name, field]) => [field[0], [name, field]]));
  }

  encode(message: Message<F>): Uint8Array {
    const writer = new BinaryWriter();
    this.write(writer, message as Readonly<Record<string, unknown>>);
    return writer.finish();
  }

  /** Throws an Error when the bytes are not such a message. */
  decode(bytes: Uint8Array): Message<F> {
    return this.read(new BinaryReader(bytes), bytes.length);
  }

  write(writer: BinaryWriter, message: Readonly<Record<string, unknown>>): void {
    for (const [name, [number, kind, shape]] of Object.entries(this.fields)) {
      const value = message[name];
      if (value === undefined) continue;
      if (shape === "list") for (const each of value as readonly unknown[]) writeField(writer, number, kind, each);
      else if (shape !== "map") writeField(writer, number, kind, value);
      else
        for (const [key, each] of Object.entries(value as object)) {
          writer.tag(number, WireType.LengthDelimited).fork();
          writeField(writer, 1, "string", key);
          writeField(writer, 2, kind, each);
          writer.join();
        }
    }
  }

  read(reader: BinaryReader, length: number): Message<F> {
    const message: Record<string, unknown> = {};
    const end = reader.pos + length;
    while (reader.pos < end) {
      const [number, wireType] = reader.tag();
      const known = this.#byNumber.get(number);
      if (known === undefined) {
        reader.skip(wireType, number);
        continue;
      }
      const [name, [, kind, shape]] = known;
      if (shape === "list") {
        message[name] ??= [];
        (message[name] as unknown[]).push(readValue(reader, kind));
      } else if (shape === "map") {
        message[name] ??= Object.create(null);
        readEntry(reader, kind, message[name] as Record<string, unknown>);
      } else message[name] = readValue(reader, kind);
    }
    return message as Message<F>;
  }
}

function writeField(writer: BinaryWriter, number: number, kind: Kind, value: unknown): void {
  switch (kind) {
    case "bool":
      writer.tag(number, WireType.Varint).bool(value as boolean);
      break;
    case "int32":
      writer.tag(number, WireType.Varint).int32(value as number);
      break;
    case "uint32":
      writer.tag(number, WireType.Varint).uint32(value as number);
      break;
    case "int64":
      writer.tag(number, WireType.Varint).int64(Math.trunc(value as number));
      break;
    case "double":
      writer.tag(number, WireType.Bit64).double(value as number);
      break;
    case "string":
      writer.tag(number, WireType.LengthDelimited).string(value as string);
      break;
    case "bytes":
      writer.tag(number, WireType.LengthDelimited).bytes(value as Uint8Array);
      break;
    case "struct":
      writer.tag(number, WireType.LengthDelimited).fork();
      writeStruct(writer, value as object);
      writer.join();
      break;
    default:
      writer.tag(number, WireType.LengthDelimited).fork();
      kind.write(writer, value as Readonly<Record<string, unknown>>);
      writer.join();
  }
}

function readValue(reader: BinaryReader, kind: Kind): unknown {
  switch (kind) {
    case "bool":
      return reader.bool();
    case "int32":
      return reader.int32();
    case "uint32":
      return reader.uint32();
    case "int64":
      return Number(reader.int64());
    case "double":
      return reader.double();
    case "string":
      return reader.string();
    case "bytes":
      return reader.bytes();
    case "struct":
      return readStruct(reader, reader.uint32());
    default:
      return kind.read(reader, reader.uint32());
  }
}

function readEntry(reader: BinaryReader, kind: Kind, into: Record<string, unknown>): void {
  const end = reader.uint32() + reader.pos;
  let key = "";
  let value: unknown;
  while (reader.pos < end) {
    const [number, wireType] = reader.tag();
    if (number === 1) key = reader.string();
    else if (number === 2) value = readValue(reader, kind);
    else reader.skip(wireType, number);
  }
  into[key] = value;
}

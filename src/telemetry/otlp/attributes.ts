import { type BinaryWriter, WireType } from "@bufbuild/protobuf/wire";

/** Values as JSON has them; `undefined` is left out. */
export type Attributes = Readonly<Record<string, unknown>>;

/** Characters of a text that are kept: what a client sends must not make exports arbitrarily long. */
const MAX_TEXT = 8192;

/** Fields of `AnyValue` (opentelemetry/proto/common/v1/common.proto). */
const STRING = 1;
const BOOL = 2;
const INT = 3;
const DOUBLE = 4;
const ARRAY = 5;
const MAP = 6;

/** Each attribute as a `KeyValue` in field `number`. */
export function writeAttributes(writer: BinaryWriter, number: number, attributes: Attributes): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined) continue;
    writer.tag(number, WireType.LengthDelimited).fork();
    writer.tag(1, WireType.LengthDelimited).string(cut(name));
    writeAnyValue(writer, 2, value);
    writer.join();
  }
}

/** An `AnyValue` in field `number`; null is the empty one. */
export function writeAnyValue(writer: BinaryWriter, number: number, value: unknown): void {
  writer.tag(number, WireType.LengthDelimited).fork();
  if (typeof value === "string") writer.tag(STRING, WireType.LengthDelimited).string(cut(value));
  else if (typeof value === "boolean") writer.tag(BOOL, WireType.Varint).bool(value);
  else if (typeof value === "number") {
    if (Number.isSafeInteger(value)) writer.tag(INT, WireType.Varint).int64(value);
    else writer.tag(DOUBLE, WireType.Bit64).double(value);
  } else if (Array.isArray(value)) {
    writer.tag(ARRAY, WireType.LengthDelimited).fork();
    for (const each of value) writeAnyValue(writer, 1, each);
    writer.join();
  } else if (typeof value === "object" && value !== null) {
    writer.tag(MAP, WireType.LengthDelimited).fork();
    writeAttributes(writer, 1, value as Attributes);
    writer.join();
  }
  writer.join();
}

function cut(text: string): string {
  // Half of a surrogate pair is no text.
  return text.length <= MAX_TEXT ? text.toWellFormed() : text.slice(0, MAX_TEXT).toWellFormed();
}

import { type BinaryReader, type BinaryWriter, WireType } from "@bufbuild/protobuf/wire";

/** Deeper nesting is rejected: it does not occur, and reading it would exhaust the stack. */
const MAX_DEPTH = 64;

/** Writes the fields of a google.protobuf.Struct; values that JSON cannot express are left out. */
export function writeStruct(writer: BinaryWriter, value: object): void {
  for (const [key, each] of Object.entries(value)) {
    if (each === undefined) continue;
    writer.tag(1, WireType.LengthDelimited).fork();
    writer.tag(1, WireType.LengthDelimited).string(key);
    writer.tag(2, WireType.LengthDelimited).fork();
    writeValue(writer, each);
    writer.join().join();
  }
}

/** google.protobuf.Value */
function writeValue(writer: BinaryWriter, value: unknown): void {
  if (typeof value === "number") writer.tag(2, WireType.Bit64).double(value);
  else if (typeof value === "string") writer.tag(3, WireType.LengthDelimited).string(value);
  else if (typeof value === "boolean") writer.tag(4, WireType.Varint).bool(value);
  else if (Array.isArray(value)) {
    writer.tag(6, WireType.LengthDelimited).fork();
    for (const each of value) {
      writer.tag(1, WireType.LengthDelimited).fork();
      writeValue(writer, each);
      writer.join();
    }
    writer.join();
  } else if (typeof value === "object" && value !== null) {
    writer.tag(5, WireType.LengthDelimited).fork();
    writeStruct(writer, value);
    writer.join();
  } else writer.tag(1, WireType.Varint).int32(0);
}

/** Reads `length` bytes of a google.protobuf.Struct. */
export function readStruct(reader: BinaryReader, length: number, depth = 0): Record<string, unknown> {
  if (depth > MAX_DEPTH) throw new Error("a struct is nested too deeply");
  // A key such as `__proto__` is a name like any other.
  const struct = Object.create(null) as Record<string, unknown>;
  readFields(reader, length, (number) => {
    if (number !== 1) return false;
    let key = "";
    let value: unknown = null;
    readFields(reader, reader.uint32(), (part) => {
      if (part === 1) key = reader.string();
      else if (part === 2) value = readValue(reader, reader.uint32(), depth + 1);
      return part === 1 || part === 2;
    });
    struct[key] = value;
    return true;
  });
  return struct;
}

function readValue(reader: BinaryReader, length: number, depth: number): unknown {
  let value: unknown = null;
  readFields(reader, length, (number) => {
    if (number === 2) value = reader.double();
    else if (number === 3) value = reader.string();
    else if (number === 4) value = reader.bool();
    else if (number === 5) value = readStruct(reader, reader.uint32(), depth + 1);
    else if (number === 6) value = readList(reader, reader.uint32(), depth + 1);
    else return false;
    return true;
  });
  return value;
}

function readList(reader: BinaryReader, length: number, depth: number): unknown[] {
  const list: unknown[] = [];
  readFields(reader, length, (number) => {
    if (number !== 1) return false;
    list.push(readValue(reader, reader.uint32(), depth + 1));
    return true;
  });
  return list;
}

/** Calls back for each field; false = not known, skip it. */
function readFields(reader: BinaryReader, length: number, take: (number: number) => boolean): void {
  const end = reader.pos + length;
  while (reader.pos < end) {
    const [number, wireType] = reader.tag();
    if (!take(number)) reader.skip(wireType, number);
  }
}

import {
  BOOL,
  BYTES,
  DOUBLE,
  DURATION,
  DYN,
  INT,
  list,
  map,
  NULL,
  optional,
  STRING,
  TIMESTAMP,
  type Type,
  typeOf,
  UINT,
} from "./types.ts";

/** Names of types that are values of expressions, as in `type(x) == string`. */
export const TYPE_NAMES: ReadonlyMap<string, Type> = new Map([
  ["bool", BOOL],
  ["int", INT],
  ["uint", UINT],
  ["double", DOUBLE],
  ["string", STRING],
  ["bytes", BYTES],
  ["list", list(DYN)],
  ["map", map(DYN, DYN)],
  ["null_type", NULL],
  ["type", typeOf(DYN)],
  ["optional_type", optional(DYN)],
  ["google.protobuf.Timestamp", TIMESTAMP],
  ["google.protobuf.Duration", DURATION],
]);

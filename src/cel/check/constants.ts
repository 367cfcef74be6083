import { CelDuration, CelTimestamp, CelUint, type CelValue } from "../values/types.ts";
import { BOOL, BYTES, DOUBLE, DURATION, DYN, INT, NULL, STRING, TIMESTAMP, type Type, UINT } from "./types.ts";

/** The type of a literal. */
export function typeOfConstant(value: CelValue): Type {
  switch (typeof value) {
    case "boolean":
      return BOOL;
    case "bigint":
      return INT;
    case "number":
      return DOUBLE;
    case "string":
      return STRING;
    default:
  }
  if (value === null) return NULL;
  if (value instanceof CelUint) return UINT;
  if (value instanceof Uint8Array) return BYTES;
  if (value instanceof CelTimestamp) return TIMESTAMP;
  return value instanceof CelDuration ? DURATION : DYN;
}

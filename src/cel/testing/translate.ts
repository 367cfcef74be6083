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
  opaque,
  STRING,
  TIMESTAMP,
  type Type,
  typeOf,
  UINT,
} from "../environment/types.ts";
import { parseDuration, parseTimestamp } from "../functions/times.ts";
import { Failure } from "../values/failure.ts";
import { CelMap } from "../values/map.ts";
import { CelType, CelUint, type CelValue } from "../values/types.ts";
import type { ExpectedType, ExpectedValue } from "./cases.ts";

const PRIMITIVES: Readonly<Record<string, Type>> = {
  BOOL,
  INT64: INT,
  UINT64: UINT,
  DOUBLE,
  STRING,
  BYTES,
};
const WELL_KNOWN: Readonly<Record<string, Type>> = { TIMESTAMP, DURATION, ANY: DYN };

/** The type that the data means. Messages and wrappers, which this implementation does not have, become types of their own. */
export function typeFrom(type: ExpectedType | undefined): Type {
  if (type === undefined) return DYN;
  if (type.primitive !== undefined) return PRIMITIVES[type.primitive] ?? DYN;
  if (type.wellKnown !== undefined) return WELL_KNOWN[type.wellKnown] ?? DYN;
  if (type.null !== undefined) return NULL;
  if (type.listType !== undefined) return list(typeFrom(type.listType.elemType));
  if (type.mapType !== undefined) return map(typeFrom(type.mapType.keyType), typeFrom(type.mapType.valueType));
  if (type.type !== undefined) return typeOf(typeFrom(type.type));
  if (type.abstractType !== undefined)
    return { name: type.abstractType.name, params: (type.abstractType.parameterTypes ?? []).map(typeFrom) };
  if (type.typeParam !== undefined) return { name: type.typeParam, params: [], variable: true };
  if (type.wrapper !== undefined) return opaque(`wrapper(${type.wrapper})`);
  return type.messageType === undefined ? DYN : opaque(type.messageType);
}

/** The value that the data means; undefined for messages. */
export function valueFrom(value: ExpectedValue): CelValue | undefined {
  if (value.boolValue !== undefined) return value.boolValue;
  if (value.int64Value !== undefined) return BigInt(value.int64Value);
  if (value.uint64Value !== undefined) return new CelUint(BigInt(value.uint64Value));
  if (value.doubleValue !== undefined) return Number(value.doubleValue);
  if (value.stringValue !== undefined) return value.stringValue;
  if (value.bytesValue !== undefined) return Buffer.from(value.bytesValue, "base64");
  if (value.typeValue !== undefined) return new CelType(value.typeValue);
  if (value.listValue !== undefined) return (value.listValue.values ?? []).map((item) => valueFrom(item) ?? null);
  if (value.mapValue !== undefined) {
    const entries = new CelMap();
    for (const entry of value.mapValue.entries ?? [])
      entries.add(valueFrom(entry.key) ?? null, valueFrom(entry.value) ?? null);
    return entries;
  }
  if (value.objectValue !== undefined) return objectFrom(value.objectValue);
  return value.nullValue === null ? null : undefined;
}

function objectFrom(object: { readonly "@type": string; readonly value?: string }): CelValue | undefined {
  const parsed = object["@type"].endsWith("google.protobuf.Timestamp")
    ? parseTimestamp(object.value ?? "")
    : object["@type"].endsWith("google.protobuf.Duration")
      ? parseDuration(object.value ?? "")
      : undefined;
  return parsed instanceof Failure ? undefined : parsed;
}

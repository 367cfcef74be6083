import { isUtf8 } from "node:buffer";
import { createHash } from "node:crypto";
import { A, BYTES, DYN, map, STRING, type Type } from "../check/types.ts";
import { charge } from "../evaluate/budget.ts";
import { Failure, fail, missing } from "../evaluate/failure.ts";
import { type AnyMap, fromData, isList, isMap, mapGet, mapKeys } from "../values/access.ts";
import { jsonOf, toText } from "../values/convert.ts";
import { CelMap } from "../values/map.ts";
import type { CelValue } from "../values/types.ts";
import { both, fn, type Overload } from "./overload.ts";

type Data = string | Uint8Array;

/** Steps for each character of JSON: parsing takes 5 to 30 ns. A body of 2 MiB just fits. */
const PER_JSON_CHARACTER = 4;
/** Digests take 1 to 6 ns for each byte, percent-encoding about 20, forms about 50. */
const PER_HASHED = 4;
const PER_ENCODED = 8;
const PER_FORM_CHARACTER = 32;

function charged(data: Data): Data {
  charge(data.length);
  return data;
}

/** The function for text and for bytes. */
function onData(name: string, result: Type, run: (data: Data) => CelValue | Failure): Overload[] {
  return [STRING, BYTES].map((type) => fn(name, [type], result, (data: Data) => run(charged(data))));
}

const hash = (name: string): Overload[] =>
  onData(`${name}.encode`, STRING, (data) => {
    charge(data.length * PER_HASHED);
    return createHash(name).update(data).digest("hex");
  });

function encodeBase64(data: Data): CelValue {
  return Buffer.from(data).toString("base64");
}

/** Standard alphabet, with or without padding; the URL alphabet is read too. */
function decodeBase64(text: string): CelValue | Failure {
  charge(text.length);
  if (!/^[A-Za-z0-9+/_-]*={0,2}$/.test(text) || text.replace(/=+$/, "").length % 4 === 1)
    return fail("the text is not base64");
  return Buffer.from(text, "base64");
}

function parseJson(data: Data): CelValue | Failure {
  if (typeof data !== "string" && !isUtf8(data)) return fail("the bytes are not UTF-8, so they are not JSON");
  const known = typeof data === "string" ? undefined : parsed.get(data);
  if (known !== undefined) return known;
  charge(data.length * (PER_JSON_CHARACTER - 1));
  try {
    const text = typeof data === "string" ? data : Buffer.from(data).toString();
    const value = fromData(JSON.parse(text, LARGE_INTEGER.test(text) ? exactly : undefined));
    if (typeof data !== "string") parsed.set(data, value);
    return value;
  } catch {
    return fail("the text is not JSON");
  }
}

/** Bodies that have been parsed: several rules may parse the same one, and the bytes of a message never change. */
const parsed = new WeakMap<Uint8Array, CelValue>();
/** An integer that a double may not represent; without a reviver, JSON.parse would round it. */
const LARGE_INTEGER = /[0-9]{16}/;

/** Integers outside the exact range of doubles become bigint, if an int can hold them. */
function exactly(_: string, value: unknown, context?: { readonly source?: string }): unknown {
  const source = context?.source ?? "";
  if (typeof value !== "number" || Number.isSafeInteger(value) || !/^-?[0-9]{1,19}$/.test(source)) return value;
  const integer = BigInt(source);
  return BigInt.asIntN(64, integer) === integer ? integer : value;
}

function parseField(data: Data, name: string): CelValue | Failure {
  const value = parseJson(data);
  if (value instanceof Failure) return value;
  const field = isMap(value) ? mapGet(value, name) : undefined;
  return field ?? missing(`no such key: ${name.slice(0, 100)}`);
}

function decodeUrl(text: string): CelValue | Failure {
  charge(text.length);
  try {
    return decodeURIComponent(text);
  } catch {
    return fail("the text is not percent-encoded UTF-8");
  }
}

function encodeForm(fields: AnyMap): CelValue | Failure {
  const form = new URLSearchParams();
  for (const key of mapKeys(fields)) {
    const value = mapGet(fields, key) ?? null;
    if (value === null) continue;
    for (const item of isList(value) ? value : [value]) {
      charge(1);
      form.append(toText(key) ?? "", toText(item) ?? "");
    }
  }
  form.sort();
  return form.toString();
}

/** A repeated field is a list of its values. */
function decodeForm(data: Data): CelValue | Failure {
  if (typeof data !== "string" && !isUtf8(data)) return fail("the bytes are not UTF-8, so they are not a form");
  charge(data.length * PER_FORM_CHARACTER);
  const form = new URLSearchParams(typeof data === "string" ? data : Buffer.from(data).toString());
  const fields = new CelMap();
  for (const name of new Set(form.keys())) {
    const values = form.getAll(name);
    charge(values.length);
    fields.add(name, values.length === 1 ? (values[0] ?? "") : values);
  }
  return fields;
}

/** Everything but letters, digits, `-`, `.`, `_` and `~` (RFC 3986 2.3); encodeURIComponent leaves a few more. */
function encodeUrl(data: Data): CelValue | Failure {
  charge(data.length * PER_ENCODED);
  const text = typeof data === "string" ? data.toWellFormed() : Buffer.from(data).toString();
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

/** The digits of an integer beyond 2^53 as JSON has them: a number. */
function exactNumber(value: bigint): unknown {
  return (JSON as unknown as { rawJSON(text: string): unknown }).rawJSON(String(value));
}

/** The payload of a JWT, without verifying its signature. */
function jwtPayload(token: string): CelValue | Failure {
  charge(token.length);
  const [, payload] = token.split(".");
  const decoded = payload === undefined ? fail("the text is not a JWT") : decodeBase64(payload);
  return decoded instanceof Uint8Array ? parseJson(decoded) : decoded;
}

/** Texts to bytes and back, hashes, JSON. */
export const ENCODERS: readonly Overload[] = [
  ...["base64.encode", "base64Encode"].flatMap((name) => onData(name, STRING, encodeBase64)),
  ...onData("base64Encode", STRING, encodeBase64).map((overload) => ({ ...overload, member: true })),
  fn("base64.decode", [STRING], BYTES, decodeBase64),
  ...both("base64Decode", [STRING], BYTES, decodeBase64),
  ...onData("url.encode", STRING, encodeUrl),
  fn("url.decode", [STRING], STRING, decodeUrl),
  fn("form.encode", [map(STRING, A)], STRING, encodeForm),
  ...onData("form.decode", map(STRING, DYN), decodeForm),
  ...["sha1", "sha256", "md5"].flatMap(hash),
  ...onData("json", DYN, parseJson),
  ...[STRING, BYTES].map((type) => fn("jsonField", [type, STRING], DYN, parseField)),
  ...both("toJson", [A], STRING, (value: CelValue) => {
    const text = JSON.stringify(jsonOf(value, exactNumber));
    charge(text.length);
    return text;
  }),
  fn("unvalidatedJwtPayload", [STRING], DYN, jwtPayload),
];

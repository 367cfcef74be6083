/** Functions that convert text and bytes: base64, hex, URLs, forms, JSON, digests, tokens. */
import { isUtf8 } from "node:buffer";
import { createHash } from "node:crypto";
import { both, fn, type Overload } from "../environment/overload.ts";
import { A, BYTES, DYN, map, STRING, type Type } from "../environment/types.ts";
import { type AnyMap, fromData, isList, isMap, mapGet, mapKeys } from "../values/access.ts";
import { charge } from "../values/budget.ts";
import { jsonOf, toText } from "../values/convert.ts";
import { Failure, fail, missing } from "../values/failure.ts";
import { readJson } from "../values/json.ts";
import { CelMap } from "../values/map.ts";
import type { CelValue } from "../values/types.ts";

type Data = string | Uint8Array;

/** Bytes for each step of a conversion to text: 0.1 ns each, 1 ns where the text is not ASCII. */
const BYTES_PER_STEP = 8;
/** Steps of a buffer or a digest. */
const PER_BUFFER = 512;
const PER_DIGEST = 4096;
/** Digests take 1 to 6 ns for each byte, percent-encoding 20 to 150, forms 50. */
const PER_HASHED = 4;
const PER_ENCODED = 64;
const PER_FORM_CHARACTER = 64;
const PER_FORM_FIELD = 512;
/** Steps for each character of JSON that is written. */
const PER_WRITTEN = 4;

/** The function for text and for bytes. */
function onData(name: string, result: Type, run: (data: Data) => CelValue | Failure): Overload[] {
  return [STRING, BYTES].map((type) => fn(name, [type], result, run));
}

const hash = (name: string): Overload[] =>
  onData(`${name}.encode`, STRING, (data) => {
    charge(PER_DIGEST + data.length * PER_HASHED);
    return createHash(name).update(data).digest("hex");
  });

function encodeBase64(data: Data): CelValue {
  charge(PER_BUFFER + data.length * 4);
  return Buffer.from(data).toString("base64");
}

/** Standard alphabet, with or without padding; the URL alphabet is read too. */
function decodeBase64(text: string): CelValue | Failure {
  charge(PER_BUFFER + text.length * 4);
  if (!/^[A-Za-z0-9+/_-]*={0,2}$/.test(text) || text.replace(/=+$/, "").length % 4 === 1)
    return fail("the text is not base64");
  return Buffer.from(text, "base64");
}

function parseJson(data: Data): CelValue | Failure {
  if (typeof data === "string") return asValue(readJson(data));
  if (data === parsed?.bytes) return parsed.value;
  charge(PER_BUFFER + Math.ceil(data.length / BYTES_PER_STEP));
  if (!isUtf8(data)) return fail("the bytes are not UTF-8, so they are not JSON");
  const value = asValue(readJson(Buffer.from(data.buffer, data.byteOffset, data.length).toString()));
  remember({ bytes: data, value });
  return value;
}

function asValue(data: unknown): CelValue | Failure {
  return data instanceof Failure ? data : fromData(data);
}

/** Bytes with their value as JSON, or with the error. */
interface Parsed {
  readonly bytes: Uint8Array;
  readonly value: CelValue | Failure;
}

/**
 * The last bytes that were parsed: the rules of a policy, and of policies that run one after another, often parse the same body. There is
 * one entry per thread, kept until the event loop turns: a value may take twenty times the memory of its text, and a request may wait
 * minutes for its backend.
 */
let parsed: Parsed | undefined;

function remember(last: Parsed): void {
  if (parsed === undefined) setImmediate(forget);
  parsed = last;
}

function forget(): void {
  parsed = undefined;
}

function parseField(data: Data, name: string): CelValue | Failure {
  charge(name.length);
  const value = parseJson(data);
  if (value instanceof Failure) return value;
  const field = isMap(value) ? mapGet(value, name) : undefined;
  return field ?? missing(`no such key: ${name.slice(0, 100)}`);
}

function decodeUrl(text: string): CelValue | Failure {
  charge(text.length * PER_ENCODED);
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
      const [name, text] = [toText(key) ?? "", toText(item) ?? ""];
      charge(PER_FORM_FIELD + (name.length + text.length) * PER_FORM_CHARACTER);
      form.append(name, text);
    }
  }
  form.sort();
  return form.toString();
}

/** A repeated field is a list of its values. */
function decodeForm(data: Data): CelValue | Failure {
  charge(data.length * PER_FORM_CHARACTER);
  if (typeof data !== "string" && !isUtf8(data)) return fail("the bytes are not UTF-8, so they are not a form");
  const form = new URLSearchParams(typeof data === "string" ? data : Buffer.from(data).toString());
  const fields = new CelMap();
  const lists = new Map<string, string[]>();
  for (const [name, value] of form) {
    const values = lists.get(name);
    if (values === undefined) lists.set(name, [value]);
    else values.push(value);
  }
  for (const [name, values] of lists) fields.add(name, values.length === 1 ? (values[0] ?? "") : values);
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
  charge(token.length * 4);
  const [, payload] = token.split(".", 2);
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
    charge(text.length * PER_WRITTEN);
    return text;
  }),
  fn("unvalidatedJwtPayload", [STRING], DYN, jwtPayload),
];

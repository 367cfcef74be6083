import { isUtf8 } from "node:buffer";
import { createHash } from "node:crypto";
import { A, BYTES, DYN, map, STRING, type Type } from "../check/types.ts";
import { charge } from "../evaluate/budget.ts";
import { type Failure, fail } from "../evaluate/failure.ts";
import { type AnyMap, isList, mapGet, mapKeys } from "../values/access.ts";
import { jsonOf, toText } from "../values/convert.ts";
import type { CelValue } from "../values/types.ts";
import { both, fn, type Overload } from "./overload.ts";

type Data = string | Uint8Array;

/** Steps for each character of JSON: parsing takes 5 to 30 ns. A body of 2 MiB just fits. */
const PER_JSON_CHARACTER = 8;

function charged(data: Data): Data {
  charge(data.length);
  return data;
}

/** The function for text and for bytes. */
function onData(name: string, result: Type, run: (data: Data) => CelValue | Failure): Overload[] {
  return [STRING, BYTES].map((type) => fn(name, [type], result, (data: Data) => run(charged(data))));
}

const hash = (name: string): Overload[] =>
  onData(`${name}.encode`, STRING, (data) => createHash(name).update(data).digest("hex"));

/** Standard alphabet, with or without padding; the URL alphabet is read too. */
function decodeBase64(text: string): CelValue | Failure {
  charge(text.length);
  if (!/^[A-Za-z0-9+/_-]*={0,2}$/.test(text) || text.replace(/=+$/, "").length % 4 === 1)
    return fail("the text is not base64");
  return Buffer.from(text, "base64");
}

function parseJson(data: Data): CelValue | Failure {
  if (typeof data !== "string" && !isUtf8(data)) return fail("the bytes are not UTF-8, so they are not JSON");
  charge(data.length * (PER_JSON_CHARACTER - 1));
  try {
    return JSON.parse(typeof data === "string" ? data : Buffer.from(data).toString()) as CelValue;
  } catch {
    return fail("the text is not JSON");
  }
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
    for (const item of isList(value) ? value : [value]) {
      charge(1);
      form.append(toText(key) ?? "", toText(item) ?? "");
    }
  }
  return form.toString();
}

/** Of repeated fields the last counts. */
function decodeForm(data: Data): CelValue {
  const form = new URLSearchParams(typeof data === "string" ? data : Buffer.from(data).toString());
  return Object.fromEntries(form);
}

/** The payload of a JWT, without any check of its signature. */
function jwtPayload(token: string): CelValue | Failure {
  charge(token.length);
  const [, payload] = token.split(".");
  const decoded = payload === undefined ? fail("the text is not a JWT") : decodeBase64(payload);
  return decoded instanceof Uint8Array ? parseJson(decoded) : decoded;
}

/** Texts to bytes and back, hashes, JSON. */
export const ENCODERS: readonly Overload[] = [
  ...onData("base64.encode", STRING, (data) => Buffer.from(data).toString("base64")),
  fn("base64.decode", [STRING], BYTES, decodeBase64),
  ...onData("url.encode", STRING, (data) => encodeURIComponent(Buffer.from(data).toString())),
  fn("url.decode", [STRING], STRING, decodeUrl),
  fn("form.encode", [map(STRING, A)], STRING, encodeForm),
  ...onData("form.decode", map(STRING, STRING), decodeForm),
  ...["sha1", "sha256", "md5"].flatMap(hash),
  ...onData("json", DYN, parseJson),
  ...both("toJson", [A], STRING, (value: CelValue) => {
    const text = JSON.stringify(jsonOf(value));
    charge(text.length);
    return text;
  }),
  fn("unvalidatedJwtPayload", [STRING], DYN, jwtPayload),
];

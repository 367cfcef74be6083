import { type CelValue, toBytes, toJson } from "../../cel/index.ts";
import { isFieldValue } from "../../http/h1/syntax.ts";
import type { Latin1 } from "../../http/message.ts";
import { headerText } from "./bodies.ts";

/** Text as header lists carry it, one latin1 character for each byte of its UTF-8. Throws an Error when it cannot be sent. */
export function sendableText(text: string): Latin1 {
  const value = headerText(text);
  if (!isFieldValue(value)) throw new Error("the value has a control character such as a line break");
  return value;
}

/** A value as a body: text and bytes as they are, lists and maps as JSON. */
export function bodyBytes(value: CelValue): Uint8Array {
  if (typeof value !== "object" || value === null || value instanceof Uint8Array) return toBytes(value);
  const json = toJson(value);
  return Buffer.from(typeof json === "string" ? json : JSON.stringify(json));
}

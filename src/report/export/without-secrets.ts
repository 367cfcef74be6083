import { type Fields, isObject } from "../../base/fields.ts";
import { SECRET_PARAMETERS } from "../../base/redaction.ts";
import { sensitiveHeaders } from "../../trace/redaction.ts";
import { RequestSecrets } from "../../trace/secrets.ts";

/**
 * Redacts events as the gateway does by default, for files that are given to others: a trace recorded with `--reveal` still has its
 * secrets. Names that only a configuration calls sensitive are not known here. Bodies are not changed.
 */
export function withoutSecrets(events: readonly Fields[]): readonly Fields[] {
  const secrets = new RequestSecrets(false, sensitiveHeaders([]), SECRET_PARAMETERS);
  // A secret is redacted wherever it appears, so all of them are collected first.
  const remember = (value: unknown): void => {
    if (!isObject(value)) return;
    for (const [name, each] of Object.entries(value))
      if (name === "headers" && isObject(each)) secrets.remember(flat(each));
      else remember(each);
  };
  const redacted = (value: unknown, name: string): unknown => {
    if (typeof value === "string") return name === "body" ? value : secrets.details(value);
    if (Array.isArray(value)) return value.map((each) => redacted(each, name));
    if (!isObject(value)) return value;
    if (name === "headers") return secrets.headers(flat(value));
    return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, redacted(each, key)]));
  };
  for (const event of events) remember(event);
  return events.map((event) => redacted(event, "") as Fields);
}

/** Header fields as an alternating list of names and values. */
function flat(headers: Fields): string[] {
  return Object.entries(headers).flatMap(([name, value]) => [name, String(value)]);
}

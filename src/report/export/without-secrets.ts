import { type Fields, isObject } from "../../base/fields.ts";
import { SECRET_PARAMETERS } from "../../base/redaction.ts";
import { sensitiveHeaders } from "../../trace/redaction.ts";
import { RequestSecrets } from "../../trace/secrets.ts";

/**
 * The events without secrets, for files that are given to others: also those of a trace that was recorded with `--reveal`, as the gateway
 * redacts by default. Which other names a configuration calls sensitive is not known here. Bodies stay as they are.
 */
export function withoutSecrets(events: readonly Fields[]): readonly Fields[] {
  const secrets = new RequestSecrets(false, sensitiveHeaders([]), SECRET_PARAMETERS);
  // A secret is redacted everywhere, so all are known before the first event is redacted.
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

/** Header fields as the alternating list of names and values that they came from. */
function flat(headers: Fields): string[] {
  return Object.entries(headers).flatMap(([name, value]) => [name, String(value)]);
}

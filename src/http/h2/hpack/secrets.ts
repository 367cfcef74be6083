/** Fields whose values the next hop must not put into a table either (RFC 7541 6.2.3, 7.1.3). */
import type { HeaderList } from "../../message/message.ts";

/** Never indexed in any direction: the size of later blocks would confirm a guess of the value. */
export const SECRET_NAMES: ReadonlySet<string> = new Set([
  "authorization",
  "cookie2",
  "proxy-authorization",
  "set-cookie",
  "set-cookie2",
  "x-amz-security-token",
  "x-api-key",
  "x-auth-token",
  "x-csrf-token",
  "x-xsrf-token",
]);

/** The peer has sent the field `name` as never indexed. Names that are never indexed anyway need no note. */
export function noteNeverIndexed(fields: HeaderList, name: string): void {
  if (SECRET_NAMES.has(name)) return;
  fields.neverIndexed ??= new Set();
  fields.neverIndexed.add(name);
}

import * as auth from "./auth.ts";
import * as common from "./common.ts";
import * as extProc from "./ext-proc.ts";
import * as rateLimit from "./rate-limit.ts";
import { type Fields, MessageType } from "./wire.ts";

/** Every message of the gateway's tables, also those that only other messages name. */
export function allTables(): ReadonlyMap<string, Fields> {
  const tables = new Map<string, Fields>();
  const add = (value: unknown): void => {
    if (!(value instanceof MessageType) || tables.has(value.name)) return;
    const fields = value.fields as Fields;
    tables.set(value.name, fields);
    for (const [, kind] of Object.values(fields)) add(kind);
  };
  for (const room of [common, auth, rateLimit, extProc]) for (const value of Object.values(room)) add(value);
  return tables;
}

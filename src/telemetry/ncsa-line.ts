/** Lines of the access log in the formats of Apache, for the many programs that read those. */
import type { AccessRecord } from "./access-record.ts";

/** `combined` has the referrer and the user agent at its end. */
export type NcsaFormat = "common" | "combined";

/** What a line has beside its record; undefined: not sent, or not known. */
export interface NcsaFields {
  readonly user: string | undefined;
  readonly referrer: string | undefined;
  readonly agent: string | undefined;
}

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
/** What stands as it is between quotes, and in a field without quotes. */
const QUOTED = /^[\x20\x21\x23-\x5b\x5d-\x7e]*$/;
const BARE = /^[\x21\x23-\x5b\x5d-\x7e]+$/;

/**
 * The line, with its line break: `<client> - <user> [<time>] "<method> <path> <version>" <status> <bytes>`, and for `combined`
 * `"<referrer>" "<user agent>"`. Connections have no request and no status, `"-" -`. As Apache does, quotes and backslashes are escaped by a
 * backslash, and all other bytes that are not visible ASCII are written as `\xhh`, so that no client can make a line or a field.
 */
export function ncsaLine(record: AccessRecord, format: NcsaFormat, { user, referrer, agent }: NcsaFields): string {
  const { source = "", method, path, version, status, bytesSent } = record;
  // `[::1]:5000` and `10.0.0.1:5000`.
  const client = source.replace(/:\d+$/, "").replace(/^\[(.*)\]$/, "$1");
  // As Apache and nginx write it.
  const protocol = version === "HTTP/2" ? "HTTP/2.0" : (version ?? "-");
  const request = method === undefined ? "-" : `${method} ${path ?? "-"} ${protocol}`;
  const line = `${bare(client)} - ${bare(user ?? "")} [${timeOf(record.time)}] ${quoted(request)} ${status ?? "-"} ${bytesSent === 0 ? "-" : bytesSent}`;
  return format === "common" ? `${line}\n` : `${line} ${quoted(referrer)} ${quoted(agent)}\n`;
}

/** `29/Nov/2026:06:25:00 +0000`, from milliseconds since the epoch. */
function timeOf(epochMs: number): string {
  const iso = new Date(epochMs).toISOString();
  return `${iso.slice(8, 10)}/${MONTHS[Number(iso.slice(5, 7)) - 1]}/${iso.slice(0, 4)}:${iso.slice(11, 19)} +0000`;
}

function quoted(text: string | undefined): string {
  if (text === undefined || text === "") return '"-"';
  return QUOTED.test(text) ? `"${text}"` : `"${escaped(text)}"`;
}

function bare(text: string): string {
  if (text === "") return "-";
  return BARE.test(text) ? text : escaped(text).replaceAll(" ", "\\x20");
}

function escaped(text: string): string {
  let shown = "";
  for (const byte of Buffer.from(text)) {
    const character = String.fromCharCode(byte);
    if (byte === 0x22 || byte === 0x5c) shown += `\\${character}`;
    else if (byte >= 0x20 && byte < 0x7f) shown += character;
    else shown += `\\x${byte.toString(16).padStart(2, "0")}`;
  }
  return shown;
}

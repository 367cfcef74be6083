/**
 * The field names the engine knows, as an automaton that reads a name in any case, one table load a character. Its last state
 * identifies the lower-case name without comparing strings and, unlike a hash, cannot collide.
 */
import { TOKEN } from "./syntax.ts";

/** Names that are common on the wire; any other name works too, it only costs a slice and a conversion to lower case. */
const KNOWN_NAMES = `
accept accept-charset accept-datetime accept-encoding accept-language accept-patch accept-ranges
access-control-allow-credentials access-control-allow-headers access-control-allow-methods access-control-allow-origin
access-control-expose-headers access-control-max-age access-control-request-headers access-control-request-method
age allow alt-svc authorization baggage cache-control cdn-loop cf-connecting-ip clear-site-data connection content-disposition
content-encoding content-language content-length content-location content-md5 content-range content-security-policy
content-security-policy-report-only content-type cookie cross-origin-embedder-policy cross-origin-opener-policy
cross-origin-resource-policy date device-memory dnt early-data etag expect expires forwarded from grpc-accept-encoding
grpc-encoding grpc-message grpc-status grpc-timeout host http2-settings if-match if-modified-since if-none-match if-range
if-unmodified-since keep-alive last-modified link location max-forwards mcp-protocol-version mcp-session-id nel origin
permissions-policy pragma priority proxy-authenticate proxy-authorization proxy-connection purpose range referer
referrer-policy report-to retry-after save-data sec-ch-ua sec-ch-ua-mobile sec-ch-ua-platform sec-fetch-dest
sec-fetch-mode sec-fetch-site sec-fetch-user sec-gpc sec-websocket-accept sec-websocket-extensions sec-websocket-key
sec-websocket-protocol sec-websocket-version server server-timing set-cookie strict-transport-security te
timing-allow-origin traceparent tracestate trailer transfer-encoding upgrade upgrade-insecure-requests user-agent vary
via warning www-authenticate x-amzn-trace-id x-api-key x-b3-parentspanid x-b3-sampled x-b3-spanid x-b3-traceid
x-content-type-options x-correlation-id x-csrf-token x-forwarded-client-cert x-forwarded-for x-forwarded-host
x-forwarded-port x-forwarded-proto x-frame-options x-powered-by x-real-ip x-request-id x-requested-with
x-retry-attempt x-tracegate-trace-token x-xss-protection`
  .trim()
  .split(/\s+/);

/** Row of the table for a name that is not known; every character leads back to it. */
const UNKNOWN = 0;
/** Row where a name begins. */
export const START = 1;
/** Columns of a row, a power of two: 0 = not part of a token, the last = no known name has this character. */
export const COLUMN_BITS = 5;
const COLUMNS = 1 << COLUMN_BITS;

/** Character → column. */
export const COLUMN = new Uint8Array(256);
/** `NEXT[(row << COLUMN_BITS) | column]` is the next row. */
export const NEXT: Uint16Array = buildRows();
/** Row → the lower-case name that ends there. */
export const NAMES: readonly (string | undefined)[] = nameEnds();

function buildRows(): Uint16Array {
  let used = 0;
  for (let code = 0; code < 256; code++) if (TOKEN[code] === 1) COLUMN[code] = COLUMNS - 1;
  for (const character of new Set(KNOWN_NAMES.join(""))) {
    used += 1;
    COLUMN[character.charCodeAt(0)] = used;
    COLUMN[character.toUpperCase().charCodeAt(0)] = used;
  }
  if (used >= COLUMNS - 1) throw new Error("the known field names use more characters than a row has columns");
  const rows = [new Uint16Array(COLUMNS), new Uint16Array(COLUMNS)];
  for (const name of KNOWN_NAMES) {
    let row = START;
    for (let i = 0; i < name.length; i++) {
      const cells = rows[row] as Uint16Array;
      const column = COLUMN[name.charCodeAt(i)] as number;
      if (cells[column] === UNKNOWN) cells[column] = rows.push(new Uint16Array(COLUMNS)) - 1;
      row = cells[column] as number;
    }
  }
  const table = new Uint16Array(rows.length * COLUMNS);
  rows.forEach((cells, row) => {
    table.set(cells, row * COLUMNS);
  });
  return table;
}

function rowOf(name: string): number {
  let row = START;
  for (let i = 0; i < name.length; i++) {
    row = NEXT[(row << COLUMN_BITS) | (COLUMN[name.charCodeAt(i)] as number)] as number;
  }
  return row;
}

function nameEnds(): (string | undefined)[] {
  const names = new Array<string | undefined>(NEXT.length / COLUMNS).fill(undefined);
  for (const name of KNOWN_NAMES) names[rowOf(name)] = name;
  return names;
}

/** Makes a table row → kind, 0 for every name that `kinds` does not list. Throws for a name that is not known. */
export function kindsByRow(kinds: Readonly<Record<string, number>>): Uint8Array {
  const table = new Uint8Array(NAMES.length);
  for (const [name, kind] of Object.entries(kinds)) {
    const row = rowOf(name);
    if (NAMES[row] !== name) throw new Error(`${name} is not among the known field names`);
    table[row] = kind;
  }
  return table;
}

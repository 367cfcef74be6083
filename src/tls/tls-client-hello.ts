/**
 * Reads the start of a TLS connection without ending TLS there: the name that the client asks for (SNI, RFC 6066 3). Node's own
 * SNI callback comes too late: by then versions, cipher suites and client CA are chosen, and those differ by listener. It also
 * cannot let TLS pass through. The proxy's TLS stage calls this with all bytes that have arrived so far.
 */

/** Raw bytes that a ClientHello may take, its record headers included; browsers send under 2 KiB. */
export const MAX_CLIENT_HELLO = 16 * 1024;

const HANDSHAKE_RECORD = 22;
const CLIENT_HELLO = 1;
const SERVER_NAME = 0;
const MAX_RECORD = 16 * 1024;
/** Clients use one or two. A bound, because all are looked at again with every byte that arrives. */
const MAX_RECORDS = 64;

/** `more`: it may become one with further bytes. `serverName` is lower-case, `` when the client names none. */
export type ClientHello =
  | { readonly state: "more" }
  | { readonly state: "invalid"; readonly detail: string }
  | { readonly state: "complete"; readonly serverName: string };

const MORE: ClientHello = { state: "more" };

/** Parses what a connection begins with. Strict, so that nothing that ends TLS behind the gateway can read another name. */
export function parseClientHello(bytes: Buffer): ClientHello {
  const fragments: Buffer[] = [];
  let gathered = 0;
  let needed = 4;
  for (let at = 0; ; ) {
    // TLSPlaintext (RFC 8446 5.1): type, legacy version 3.x, length. A ClientHello may be spread over several records.
    const record = bytes.subarray(at);
    if (record.length > 0 && record[0] !== HANDSHAKE_RECORD) return invalid("not a TLS handshake");
    if (record.length > 1 && record[1] !== 3) return invalid("not a TLS handshake");
    if (record.length < 5) return MORE;
    const length = record.readUInt16BE(3);
    if (length === 0 || length > MAX_RECORD) return invalid("a TLS record of a forbidden size");
    const fragment = record.subarray(5, 5 + length);
    if (fragments.push(fragment) > MAX_RECORDS) return invalid("the ClientHello is spread over too many records");
    gathered += fragment.length;
    if (gathered >= 4 && needed === 4) {
      const head = Buffer.concat(fragments, 4);
      if (head[0] !== CLIENT_HELLO) return invalid("the TLS handshake does not begin with a ClientHello");
      needed += head.readUIntBE(1, 3);
      if (needed > MAX_CLIENT_HELLO) return invalid("the ClientHello is too large");
    }
    if (needed > 4 && gathered >= needed) return parseBody(Buffer.concat(fragments).subarray(4, needed));
    if (fragment.length < length) return MORE;
    at += 5 + length;
  }
}

/** RFC 8446 4.1.2. */
function parseBody(body: Buffer): ClientHello {
  const reader = new Reader(body);
  // legacy_version and random.
  reader.take(2 + 32);
  const session = reader.vector(1);
  const suites = reader.vector(2);
  const compression = reader.vector(1);
  if (session === undefined || session.length > 32) return MALFORMED;
  if (suites === undefined || suites.length === 0 || suites.length % 2 !== 0) return MALFORMED;
  if (compression === undefined || compression.length === 0) return MALFORMED;
  // Up to TLS 1.2 the extensions may be absent altogether.
  if (reader.left === 0) return { state: "complete", serverName: "" };
  const list = reader.vector(2);
  if (list === undefined || reader.left > 0) return MALFORMED;
  const extensions = new Reader(list);
  let serverName: string | undefined;
  while (extensions.left > 0) {
    const type = extensions.take(2);
    const value = extensions.vector(2);
    if (type === undefined || value === undefined) return MALFORMED;
    if (type.readUInt16BE(0) !== SERVER_NAME) continue;
    // Forbidden (RFC 8446 4.2); the two names could reach two different listeners.
    if (serverName !== undefined) return invalid("the ClientHello names its server twice");
    serverName = parseServerName(value);
    if (serverName === undefined) return invalid("the ClientHello has a malformed server name");
  }
  return { state: "complete", serverName: serverName ?? "" };
}

/** One name of type host_name: a second one of the type is forbidden and there are no other types. */
function parseServerName(value: Buffer): string | undefined {
  const outer = new Reader(value);
  const list = outer.vector(2);
  if (list === undefined || outer.left > 0) return undefined;
  const entry = new Reader(list);
  const type = entry.take(1);
  const name = entry.vector(2)?.toString("latin1");
  if (type === undefined || type[0] !== 0 || name === undefined || entry.left > 0) return undefined;
  return name.length <= 255 && /^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$/.test(name) ? name.toLowerCase() : undefined;
}

/** Takes pieces from the front; undefined when there are not enough bytes. */
class Reader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get left(): number {
    return this.#bytes.length - this.#at;
  }

  take(length: number): Buffer | undefined {
    if (this.left < length) {
      this.#at = this.#bytes.length;
      return undefined;
    }
    this.#at += length;
    return this.#bytes.subarray(this.#at - length, this.#at);
  }

  /** A length of `size` bytes and as many bytes as it says. */
  vector(size: 1 | 2): Buffer | undefined {
    const length = this.take(size);
    return length === undefined ? undefined : this.take(length.readUIntBE(0, size));
  }
}

const MALFORMED = invalid("the ClientHello is malformed");

function invalid(detail: string): ClientHello {
  return { state: "invalid", detail };
}

/**
 * Reads the client's server name (SNI, RFC 6066 3) from the start of a TLS connection, without terminating TLS. Node's own SNI callback
 * comes too late: by then versions, cipher suites and client CA are chosen, which differ by listener. It also does not allow
 * passing TLS through. The proxy's TLS stage calls this with all bytes that have arrived so far.
 */
import { latin1Slice } from "../net/node-internals.ts";

/** Limit of a ClientHello in bytes, including record headers; browsers send less than 2 KiB. */
export const MAX_CLIENT_HELLO = 16 * 1024;

const HANDSHAKE_RECORD = 22;
const CLIENT_HELLO = 1;
const SERVER_NAME = 0;
const ALPN = 16;
/** The only protocol of a client that validates a name (RFC 8737 4), as its extension has it. */
export const ACME_TLS = "acme-tls/1";
const MAX_RECORD = 16 * 1024;
/** Clients use one or two records. A limit, because all of them are parsed again with every byte that arrives. */
const MAX_RECORDS = 64;

/**
 * `more`: it may become one with further bytes. `serverName` is lower-case, `` when the client names none. `validation`: the client is
 * an ACME server that validates the name (RFC 8737).
 */
type ClientHello =
  | { readonly state: "more" }
  | { readonly state: "invalid"; readonly detail: string }
  | { readonly state: "complete"; readonly serverName: string; readonly validation?: true };

const MORE: ClientHello = { state: "more" };

/** Parses the beginning of a connection. Strict, so that a TLS server behind the gateway cannot read a different name. */
export function parseClientHello(bytes: Buffer): ClientHello {
  const fragments: Buffer[] = [];
  let gathered = 0;
  let needed = 4;
  for (let at = 0; ; ) {
    // TLSPlaintext (RFC 8446 5.1): type, legacy version 3.x, length. A ClientHello may be spread over several records.
    const left = bytes.length - at;
    if (left > 0 && bytes[at] !== HANDSHAKE_RECORD) return invalid("not a TLS handshake");
    if (left > 1 && bytes[at + 1] !== 3) return invalid("not a TLS handshake");
    if (left < 5) return MORE;
    const length = bytes.readUInt16BE(at + 3);
    if (length === 0 || length > MAX_RECORD) return invalid("a TLS record of a forbidden size");
    const fragment = bytes.subarray(at + 5, at + 5 + length);
    if (fragments.push(fragment) > MAX_RECORDS) return invalid("the ClientHello is spread over too many records");
    gathered += fragment.length;
    if (gathered >= 4 && needed === 4) {
      const head = joined(fragments, 4);
      if (head[0] !== CLIENT_HELLO) return invalid("the TLS handshake does not begin with a ClientHello");
      needed += head.readUIntBE(1, 3);
      if (needed > MAX_CLIENT_HELLO) return invalid("the ClientHello is too large");
    }
    if (needed > 4 && gathered >= needed) return parseBody(new Reader(joined(fragments, needed), 4, needed));
    if (fragment.length < length) return MORE;
    at += 5 + length;
  }
}

/** At least `length` bytes. Copies nothing in the common case of one fragment. */
function joined(fragments: readonly Buffer[], length: number): Buffer {
  const [first] = fragments;
  return first !== undefined && first.length >= length ? first : Buffer.concat(fragments, length);
}

/** RFC 8446 4.1.2. */
function parseBody(reader: Reader): ClientHello {
  // legacy_version and random.
  reader.skip(2 + 32);
  const session = reader.vector(1);
  const suites = reader.vector(2);
  const compression = reader.vector(1);
  if (session === undefined || session.left > 32) return MALFORMED;
  if (suites === undefined || suites.left === 0 || suites.left % 2 !== 0) return MALFORMED;
  if (compression === undefined || compression.left === 0) return MALFORMED;
  // Up to TLS 1.2 the extensions may be absent altogether.
  if (reader.left === 0) return { state: "complete", serverName: "" };
  const extensions = reader.vector(2);
  if (extensions === undefined || reader.left > 0) return MALFORMED;
  let serverName: string | undefined;
  let validation = false;
  while (extensions.left > 0) {
    const type = extensions.uint(2);
    const value = extensions.vector(2);
    if (value === undefined) return MALFORMED;
    // No other list of one protocol has this length and this name.
    if (type === ALPN && value.left === ACME_TLS.length + 3) validation = namesOnly(value, ACME_TLS);
    if (type !== SERVER_NAME) continue;
    // Forbidden (RFC 8446 4.2); the two names could reach two different listeners.
    if (serverName !== undefined) return invalid("the ClientHello names its server twice");
    serverName = parseServerName(value);
    if (serverName === undefined) return invalid("the ClientHello has a malformed server name");
  }
  const hello = { state: "complete", serverName: serverName ?? "" } as const;
  return validation ? { ...hello, validation } : hello;
}

/** Whether a list of protocols (RFC 7301 3.1) has this one alone. */
function namesOnly(value: Reader, protocol: string): boolean {
  return value.vector(2)?.vector(1)?.text() === protocol;
}

/**
 * One name of type host_name: a second one is forbidden, and no other types exist. RFC 6066 3 has names without the dot at the end,
 * but Node.js and other clients send that of a URL such as `https://a.example./`.
 */
function parseServerName(value: Reader): string | undefined {
  const entry = value.vector(2);
  if (entry === undefined || value.left > 0) return undefined;
  const type = entry.uint(1);
  const name = entry.vector(2)?.text();
  if (type !== 0 || name === undefined || entry.left > 0) return undefined;
  if (name.length > 255 || !/^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*\.?$/.test(name)) return undefined;
  return (name.endsWith(".") ? name.slice(0, -1) : name).toLowerCase();
}

/** Takes pieces from the front of `bytes[at, end)` without making Buffers, which cost 0.2 µs each; a ClientHello has thirty pieces. */
class Reader {
  readonly #bytes: Buffer;
  #at: number;
  readonly #end: number;

  constructor(bytes: Buffer, at: number, end: number) {
    this.#bytes = bytes;
    this.#at = at;
    this.#end = end;
  }

  get left(): number {
    return this.#end - this.#at;
  }

  /** False if there are fewer bytes; then nothing is left. */
  skip(length: number): boolean {
    const enough = length <= this.left;
    this.#at = enough ? this.#at + length : this.#end;
    return enough;
  }

  /** A number of `size` bytes; undefined if there are fewer. */
  uint(size: 1 | 2): number | undefined {
    const [bytes, at] = [this.#bytes, this.#at];
    if (!this.skip(size)) return undefined;
    return size === 1 ? bytes[at] : bytes.readUInt16BE(at);
  }

  /** A length of `size` bytes, followed by that many bytes; undefined if there are fewer. */
  vector(size: 1 | 2): Reader | undefined {
    const length = this.uint(size);
    const at = this.#at;
    return length !== undefined && this.skip(length) ? new Reader(this.#bytes, at, at + length) : undefined;
  }

  /** All that is left. */
  text(): string {
    return latin1Slice(this.#bytes, this.#at, this.#end);
  }
}

const MALFORMED = invalid("the ClientHello is malformed");

function invalid(detail: string): ClientHello {
  return { state: "invalid", detail };
}

/**
 * The PROXY protocol of HAProxy, versions 1 (text) and 2 (binary): a header by which a proxy in front passes on the address of
 * the client. https://www.haproxy.org/download/3.0/doc/proxy-protocol.txt
 */
import { isIP } from "node:net";
import { addressOfBytes, canonicalAddress } from "./ip-address.ts";

/** The addresses of the connection between the client and the proxy in front, in canonical form. */
export interface ProxiedAddresses {
  readonly remoteAddress: string;
  readonly remotePort: number;
  readonly localAddress: string;
  readonly localPort: number;
}

/**
 * `more`: it may become a header with further bytes; `absent`: the bytes are not a header of an accepted version; `complete`: the
 * header is `length` bytes long. Without `addresses` those of the socket apply: the proxy checks our health (LOCAL), or does not
 * know the client (UNKNOWN).
 */
export type ProxyHeader =
  | { readonly state: "more" }
  | { readonly state: "absent" }
  | { readonly state: "invalid"; readonly detail: string }
  | { readonly state: "complete"; readonly length: number; readonly addresses: ProxiedAddresses | undefined };

type ProxyVersion = "v1" | "v2" | "all";

/**
 * Parses the first bytes of a connection; `bytes` is everything received so far. Only versions that the port expects are accepted, so
 * that a client cannot choose the more lenient one.
 */
export function parseProxyHeader(bytes: Buffer, version: ProxyVersion): ProxyHeader {
  const v1 = version === "v2" ? "no" : beginning(bytes, V1_START);
  if (v1 === "yes") return parseV1(bytes);
  const v2 = version === "v1" ? "no" : beginning(bytes, V2_SIGNATURE);
  if (v2 === "yes") return parseV2(bytes);
  return { state: v1 === "maybe" || v2 === "maybe" ? "more" : "absent" };
}

function beginning(bytes: Buffer, wanted: Buffer): "yes" | "maybe" | "no" {
  const length = Math.min(bytes.length, wanted.length);
  if (bytes.compare(wanted, 0, length, 0, length) !== 0) return "no";
  return length === wanted.length ? "yes" : "maybe";
}

// ── version 1, text (section 2.1) ──

const V1_START = Buffer.from("PROXY ");
/** Longest line of the specification, its CRLF included. */
const MAX_V1 = 107;
const LF = 10;

/** `PROXY TCP4 <source> <destination> <source port> <destination port>` or `PROXY UNKNOWN …`, and CRLF. */
function parseV1(bytes: Buffer): ProxyHeader {
  const end = bytes.subarray(0, MAX_V1).indexOf(LF);
  if (end === -1) {
    if (bytes.length < MAX_V1) return { state: "more" };
    return invalid(`the line is longer than ${MAX_V1} bytes`);
  }
  const length = end + 1;
  const line = bytes.toString("latin1", V1_START.length, end);
  if (!line.endsWith("\r")) return invalid("the line does not end in CRLF");
  const [family = "", ...parts] = line.slice(0, -1).split(" ");
  // The rest of such a line is to be ignored (section 2.1).
  if (family === "UNKNOWN") return { state: "complete", length, addresses: undefined };
  const version = family === "TCP4" ? 4 : family === "TCP6" ? 6 : undefined;
  if (version === undefined) return invalid("the protocol is not TCP4, TCP6 or UNKNOWN");
  const [source = "", destination = "", sourcePort = "", destinationPort = ""] = parts;
  const remoteAddress = parseAddress(source, version);
  const localAddress = parseAddress(destination, version);
  if (parts.length !== 4 || remoteAddress === undefined || localAddress === undefined)
    return invalid(`expected two addresses of ${family} and two ports`);
  if (!isPort(sourcePort) || !isPort(destinationPort)) return invalid("a port is not a number from 0 to 65535");
  return {
    state: "complete",
    length,
    addresses: {
      remoteAddress,
      remotePort: Number(sourcePort),
      localAddress,
      localPort: Number(destinationPort),
    },
  };
}

/** The proxy chooses the spelling, so the address is brought into the form that rules and limits compare. */
function parseAddress(text: string, version: 4 | 6): string | undefined {
  return isIP(text) === version ? canonicalAddress(text) : undefined;
}

function isPort(text: string): boolean {
  return /^(0|[1-9]\d{0,4})$/.test(text) && Number(text) <= 65_535;
}

// ── version 2, binary (section 2.2) ──

const V2_SIGNATURE = Buffer.from("\r\n\r\n\0\r\nQUIT\n");
/** Signature, version and command, family, length. */
const FIXED = 16;
/** Limit of the rest: addresses, and extension fields (TLVs) after them, which are skipped. */
const MAX_VARIABLE = 512;
const LOCAL = 0;
const PROXY = 1;
/** Family in the upper half, transport in the lower one. */
const TCP_OVER_IPV4 = 0x11;
const TCP_OVER_IPV6 = 0x21;

/** The binary header. Anything but TCP over IP keeps the addresses of the socket. */
function parseV2(bytes: Buffer): ProxyHeader {
  if (bytes.length < FIXED) return { state: "more" };
  const command = bytes.readUInt8(12);
  const family = bytes.readUInt8(13);
  const variable = bytes.readUInt16BE(14);
  // Version in the upper half, command in the lower one (section 2.2).
  if (command >> 4 !== 2) return invalid(`version ${command >> 4}; expected 2`);
  if ((command & 15) > PROXY) return invalid("the command is neither LOCAL nor PROXY");
  if (variable > MAX_VARIABLE) return invalid(`more than ${MAX_VARIABLE} bytes follow its fixed part`);
  const needed = sizeOf(family);
  const local = (command & 15) === LOCAL;
  if (!local && variable < needed) return invalid("the addresses are cut off");
  const length = FIXED + variable;
  if (bytes.length < length) return { state: "more" };
  return { state: "complete", length, addresses: local ? undefined : addresses(bytes.subarray(FIXED), family) };
}

function sizeOf(family: number): number {
  if (family === TCP_OVER_IPV4) return 12;
  return family === TCP_OVER_IPV6 ? 36 : 0;
}

function addresses(bytes: Buffer, family: number): ProxiedAddresses | undefined {
  if (sizeOf(family) === 0) return undefined;
  const size = family === TCP_OVER_IPV4 ? 4 : 16;
  const format = size === 4 ? ipv4 : addressOfBytes;
  return {
    remoteAddress: format(bytes.subarray(0, size)),
    remotePort: bytes.readUInt16BE(2 * size),
    localAddress: format(bytes.subarray(size, 2 * size)),
    localPort: bytes.readUInt16BE(2 * size + 2),
  };
}

function ipv4(bytes: Buffer): string {
  return bytes.join(".");
}

function invalid(detail: string): ProxyHeader {
  return { state: "invalid", detail: `malformed PROXY header: ${detail}` };
}

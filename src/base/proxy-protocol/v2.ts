import type { ProxiedAddresses, ProxyHeader } from "./types.ts";

export const V2_SIGNATURE = Buffer.from("\r\n\r\n\0\r\nQUIT\n");
/** Signature, version and command, family, length. */
const FIXED = 16;
/** What may follow: addresses and the fields (TLVs) behind them, which are not read. */
const MAX_VARIABLE = 512;
const LOCAL = 0;
const PROXY = 1;
/** Family in the upper half, transport in the lower one. */
const TCP_OVER_IPV4 = 0x11;
const TCP_OVER_IPV6 = 0x21;

/** The binary header. Anything but TCP over IP keeps the addresses of the socket. */
export function parseV2(bytes: Buffer): ProxyHeader {
  if (bytes.length < FIXED) return { state: "more" };
  const command = bytes.readUInt8(12);
  const family = bytes.readUInt8(13);
  const variable = bytes.readUInt16BE(14);
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
  const format = size === 4 ? ipv4 : ipv6;
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

/** RFC 5952: the longest run of two or more zero groups, the first of equals, becomes `::`. */
function ipv6(bytes: Buffer): string {
  const groups = Array.from({ length: 8 }, (_, i) => bytes.readUInt16BE(2 * i));
  if (groups.slice(0, 5).every((group) => group === 0) && groups[5] === 0xffff) return ipv4(bytes.subarray(12));
  let best = { at: 0, length: 1 };
  for (let at = 0; at < 8; at++) {
    let length = 0;
    while (groups[at + length] === 0) length++;
    if (length > best.length) best = { at, length };
  }
  const text = (from: number, to: number): string =>
    groups
      .slice(from, to)
      .map((group) => group.toString(16))
      .join(":");
  return best.length === 1 ? text(0, 8) : `${text(0, best.at)}::${text(best.at + best.length, 8)}`;
}

function invalid(detail: string): ProxyHeader {
  return { state: "invalid", detail: `malformed PROXY header: ${detail}` };
}

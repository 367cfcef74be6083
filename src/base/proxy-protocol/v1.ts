import { isIP } from "node:net";
import type { ProxyHeader } from "./types.ts";

export const V1_START = Buffer.from("PROXY ");
/** Longest line of the specification, its CRLF included. */
const MAX_LENGTH = 107;
const LF = 10;

/** `PROXY TCP4 <source> <destination> <source port> <destination port>` or `PROXY UNKNOWN …`, and CRLF. */
export function parseV1(bytes: Buffer): ProxyHeader {
  const end = bytes.subarray(0, MAX_LENGTH).indexOf(LF);
  if (end === -1) {
    if (bytes.length < MAX_LENGTH) return { state: "more" };
    return invalid(`the line is longer than ${MAX_LENGTH} bytes`);
  }
  const length = end + 1;
  const line = bytes.toString("latin1", V1_START.length, end);
  if (!line.endsWith("\r")) return invalid("the line does not end in CRLF");
  const [family = "", ...parts] = line.slice(0, -1).split(" ");
  if (family === "UNKNOWN") return { state: "complete", length, addresses: undefined };
  const version = family === "TCP4" ? 4 : family === "TCP6" ? 6 : undefined;
  if (version === undefined) return invalid("the protocol is not TCP4, TCP6 or UNKNOWN");
  const [source = "", destination = "", sourcePort = "", destinationPort = ""] = parts;
  if (parts.length !== 4 || !isAddress(source, version) || !isAddress(destination, version))
    return invalid(`expected two addresses of ${family} and two ports`);
  if (!isPort(sourcePort) || !isPort(destinationPort)) return invalid("a port is not a number from 0 to 65535");
  return {
    state: "complete",
    length,
    addresses: {
      remoteAddress: source,
      remotePort: Number(sourcePort),
      localAddress: destination,
      localPort: Number(destinationPort),
    },
  };
}

/** Scopes (`fe80::1%eth0`) mean nothing on another machine. */
function isAddress(text: string, version: 4 | 6): boolean {
  return isIP(text) === version && !text.includes("%");
}

function isPort(text: string): boolean {
  return /^(0|[1-9]\d{0,4})$/.test(text) && Number(text) <= 65_535;
}

function invalid(detail: string): ProxyHeader {
  return { state: "invalid", detail: `malformed PROXY header: ${detail}` };
}

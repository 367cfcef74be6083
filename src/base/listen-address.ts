import { isIP } from "node:net";
import { codeOf } from "./errors.ts";

/** Where one of the gateway's own servers listens (`adminAddr`, `statsAddr`, `readinessAddr`; docs/configuration.md#config). */
export type ListenAddress =
  | { readonly type: "off" }
  | { readonly type: "unix"; readonly path: string }
  /** Both loopback addresses: 127.0.0.1 and, where the machine has IPv6, ::1. */
  | { readonly type: "localhost"; readonly port: number }
  /** `host` is an IP literal without brackets. */
  | { readonly type: "socket"; readonly host: string; readonly port: number };

const GRAMMAR = "expected off, unix:/path, localhost:PORT, IP:PORT or [IPv6]:PORT";

/**
 * Parses `off`, `unix:/path`, `localhost:PORT`, `IP:PORT` or `[IPv6]:PORT`. Port 0 lets the system choose a free one.
 * @throws Error with the text and the expected forms
 */
export function parseListenAddress(text: string): ListenAddress {
  const value = text.trim();
  if (value === "off") return { type: "off" };
  if (value.startsWith("unix:")) return { type: "unix", path: unixPath(text, value.slice("unix:".length)) };
  const [, bare] = /^:?(\d{1,5})$/.exec(value) ?? [];
  if (bare !== undefined) throw invalid(text, `has no host, as localhost:${bare} and 0.0.0.0:${bare} have`);
  const colon = value.lastIndexOf(":");
  if (colon < 0) throw invalid(text, "has no port");
  const port = parsePort(text, value.slice(colon + 1));
  const host = value.slice(0, colon);
  if (host === "localhost") return { type: "localhost", port };
  const bracketed = host.startsWith("[") && host.endsWith("]");
  const literal = bracketed ? host.slice(1, -1) : host;
  const family = isIP(literal);
  if (bracketed && family === 6) return { type: "socket", host: literal, port };
  if (!bracketed && family === 4) return { type: "socket", host: literal, port };
  if (!bracketed && family === 6) throw invalid(text, `needs brackets: [${literal}]:${port}`);
  throw invalid(text, `has a host that is neither an IP address nor localhost`);
}

/** The text form that `parseListenAddress` reads back. */
export function formatListenAddress(address: ListenAddress): string {
  switch (address.type) {
    case "off":
      return "off";
    case "unix":
      return `unix:${address.path}`;
    case "localhost":
      return `localhost:${address.port}`;
    case "socket":
      return formatHostPort(address.host, address.port);
  }
}

/** Whether only one of two servers could listen, because both would take the same port or path. */
export function collide(one: ListenAddress, other: ListenAddress): boolean {
  if (one.type === "unix" && other.type === "unix") return one.path === other.path;
  if (one.type === "unix" || other.type === "unix") return false;
  if (one.type === "off" || other.type === "off" || one.port !== other.port || one.port === 0) return false;
  return hostsOf(one).some((a) => hostsOf(other).some((b) => covers(a, b) || covers(b, a)));
}

function hostsOf(address: ListenAddress): readonly string[] {
  return address.type === "socket" ? [address.host] : ["127.0.0.1", "::1"];
}

/** `::` covers IPv4 addresses too. */
function covers(host: string, other: string): boolean {
  return host === "::" || host === other || (host === "0.0.0.0" && !other.includes(":"));
}

/** `host:port`, with brackets around an IPv6 literal. */
export function formatHostPort(host: string, port: number): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}

function unixPath(text: string, path: string): string {
  if (!path.startsWith("/")) throw invalid(text, "needs an absolute path after unix:");
  // sun_path holds 108 bytes with its final zero; the system would truncate a longer path silently.
  if (Buffer.byteLength(path) > 107) throw invalid(text, "has a socket path longer than 107 bytes");
  return path;
}

function parsePort(text: string, digits: string): number {
  const port = /^\d{1,5}$/.test(digits) ? Number(digits) : Number.NaN;
  if (!(port <= 65_535)) throw invalid(text, `has the port "${digits}", which is not a number from 0 to 65535`);
  return port;
}

function invalid(text: string, what: string): Error {
  return new Error(`address "${text}" ${what}; ${GRAMMAR}`);
}

const WITHOUT_IPV6: ReadonlySet<string | undefined> = new Set(["EAFNOSUPPORT", "EADDRNOTAVAIL", "EINVAL"]);

/** Whether listening at an IPv6 address failed because the system has no IPv6. */
export function isWithoutIpv6(error: unknown): boolean {
  return WITHOUT_IPV6.has(codeOf(error));
}

/** Listens at `host` by calling `listen`. `::` means any address: on a system without IPv6, that is `0.0.0.0`. */
export async function listenAt<T>(host: string, listen: (host: string) => Promise<T>): Promise<T> {
  try {
    return await listen(host);
  } catch (error) {
    if (host === "::" && isWithoutIpv6(error)) return listen("0.0.0.0");
    throw error;
  }
}

/** What lets a process listen on a port that the system reserves (capabilities(7), ip(7)); systemd and containers can set both. */
export const RESERVED_PORT_REMEDY =
  "grant the capability CAP_NET_BIND_SERVICE, or set net.ipv4.ip_unprivileged_port_start to this port or less";

import { networkInterfaces } from "node:os";
import { ipBytes } from "./ip-address.ts";

/** Milliseconds for which the addresses of the interfaces are used. The look-up takes tens of microseconds. */
const INTERFACES_MS = 1000;

let interfaces: ReadonlySet<string> = new Set();
/** 4 and 6, of addresses that other hosts can have routes to. */
let families: ReadonlySet<number> = new Set();
/** `performance.now()` ms. */
let readAt = Number.NEGATIVE_INFINITY;

/** Whether connections to an IP address stay on this host. Text that is not an address counts as an address of this host. */
export function isOfThisHost(address: string): boolean {
  const bytes = ipBytes(address);
  return bytes === undefined || isLoopback(bytes) || isUnspecified(bytes) || interfaceAddresses().has(bytes.join("."));
}

export function isLoopback(bytes: Uint8Array): boolean {
  return bytes.length === 4 ? bytes[0] === 127 : bytes[15] === 1 && bytes.subarray(0, 15).every((byte) => byte === 0);
}

/** Systems connect to themselves for these addresses. */
export function isUnspecified(bytes: Uint8Array): boolean {
  return bytes.length === 4 ? bytes[0] === 0 : bytes.every((byte) => byte === 0);
}

/** Whether this host has an address of IPv4 or IPv6 besides those of the loopback interface and of the link (RFC 4291 2.5.6). */
export function hasAddressOf(family: number): boolean {
  interfaceAddresses();
  return families.has(family);
}

function interfaceAddresses(): ReadonlySet<string> {
  const now = performance.now();
  if (now - readAt < INTERFACES_MS) return interfaces;
  readAt = now;
  const found = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
  interfaces = new Set(found.map(({ address }) => ipBytes(address)?.join(".") ?? ""));
  const routed = found.filter(({ internal, address }) => !internal && !address.startsWith("fe80:"));
  families = new Set(routed.map(({ family }) => (family === "IPv6" ? 6 : 4)));
  return interfaces;
}

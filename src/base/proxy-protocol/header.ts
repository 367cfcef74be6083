/**
 * The header with which a proxy in front says who the client is: the PROXY protocol of HAProxy, versions 1 (text) and 2
 * (binary). https://www.haproxy.org/download/3.0/doc/proxy-protocol.txt
 */
import type { ProxyHeader, ProxyVersion } from "./types.ts";
import { parseV1, V1_START } from "./v1.ts";
import { parseV2, V2_SIGNATURE } from "./v2.ts";

/** Parses what a connection begins with. */
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

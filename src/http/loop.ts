/**
 * Request loops: through several gateways, or through this one by way of an address that is not its own (a load balancer, a Service). Every
 * request that the gateway sends carries `CDN-Loop` (RFC 8586) with the number of gateways that it has passed; a
 * request that has passed too many is rejected.
 *
 * Policies neither see nor change the field: parsers take it out of the head, and the value for the backend is written when the
 * request is sent. So a client can raise the count of its own request, but the count of a loop cannot be reset.
 */
import { LOOP_FIELD, SENT_BY } from "../base/process-id.ts";
import type { Latin1 } from "./message/message.ts";
import { latin1 } from "./message/syntax.ts";

/** Real chains of gateways are short; without a limit a loop would end only when sockets or memory run out. */
export const MAX_HOPS = 8;
/** Characters of the entries of other proxies that are passed on; further entries are dropped. */
const MAX_OTHERS = 1024;
/**
 * Hops that further attempts, mirrored requests and callouts add; the first attempt at the backend adds one.
 * If each counted as one, a request that causes two others would become 256 in a loop, and with three further attempts 65,536.
 */
const BRANCH = 4;
const NAME = "tracegate";
/**
 * Entries of gateways, with their parameters, and entries that are not empty. A client can fill the field with commas, over HTTP/2 for a few
 * bytes each time (HPACK), so it is not split: 30,000 entries took 3 ms.
 */
const OWN_ENTRIES = new RegExp(`(?<=^|,)[ \\t]*${NAME}[ \\t]*(?=[;,]|$)([^,]*)`, "gi");
const OWN_ENTRY = new RegExp(`^${NAME}[ \\t]*(?:;|$)`, "i");
const ENTRIES = /[^ \t,][^,]*/g;

/** The value for a request that arrived without the field. */
export const FIRST_HOP = entry(1);
/** The same for a request that is not the first attempt at the backend. */
const FIRST_BRANCH = entry(BRANCH);
/** The end of most heads in HTTP/1.1: a constant in one piece, because each piece of a head costs time to write. */
const FIRST_END = Buffer.from(`${LOOP_FIELD}: ${FIRST_HOP}\r\n\r\n`, "latin1").toString("latin1");

function entry(hops: number): Latin1 {
  return latin1(`${NAME}; ${SENT_BY}; hops=${hops}`);
}

/** Whether a request has passed too many gateways. `received`: its fields joined by commas, `` for none. */
export function isLoop(received: string): boolean {
  return received !== "" && hopsIn(received) >= MAX_HOPS;
}

/** The value to send for a request that came with `received`. `branch`: it is not the first attempt at the backend. */
export function nextHop(received: string, branch = false): Latin1 {
  if (received === "") return branch ? FIRST_BRANCH : FIRST_HOP;
  return latin1(entry(hopsIn(received) + (branch ? BRANCH : 1)) + othersIn(received));
}

function hopsIn(received: string): number {
  let hops = 0;
  for (const [, parameters = ""] of received.matchAll(OWN_ENTRIES)) hops = Math.max(hops, hopsOf(parameters));
  return hops;
}

/** The entries of other proxies, up to the limit, each after a comma. */
function othersIn(received: string): string {
  let others = "";
  for (const [text] of received.matchAll(ENTRIES)) {
    if (others.length + text.length >= MAX_OTHERS) break;
    if (!OWN_ENTRY.test(text)) others += `, ${text.trim()}`;
  }
  return others;
}

/**
 * Whether a request or callout with this value may get 508 on its way: a client can claim any number of hops. Otherwise it reaches its
 * destination through up to three gateways.
 */
export function mayBeRejected(sent: Latin1): boolean {
  return sent !== FIRST_BRANCH && hopsOf(sent.split(",", 1)[0] ?? "") > BRANCH + 1;
}

/** The last lines of a request's head in HTTP/1.1: the field with a value of `nextHop`, and the empty line. */
export function headEnd(value: Latin1): string {
  return value === FIRST_HOP ? FIRST_END : `${LOOP_FIELD}: ${value}\r\n\r\n`;
}

/** An entry without a readable number counts as one hop. */
function hopsOf(text: string): number {
  const hops = Number(/;\s*hops=(\d{1,4})\s*(?:;|$)/i.exec(text)?.[1] ?? 1);
  return Math.max(1, hops);
}

import { isUnspecified } from "../base/host-addresses.ts";
import { ipBytes } from "../base/ip-address.ts";
import { formatHostPort } from "../base/listen-address.ts";
import type { Bind } from "./ir.ts";

/** One socket of a bind. `host` is an IP address; `mode` has the permissions of the socket file. */
export type BindAddress =
  | { readonly host: string; readonly port: number }
  | { readonly path: string; readonly mode: number };

/** The parts of a bind that say where it listens. */
export interface Listening {
  readonly host: string;
  readonly addresses?: Bind["addresses"] | undefined;
  readonly socketMode?: number | undefined;
}

const UNIX = "unix:";
/** Only the gateway's own user may connect. */
const DEFAULT_SOCKET_MODE = 0o600;

/** The sockets of a bind, at least one. `port`: the one that the system has chosen, if the bind leaves it to the system. */
export function bindAddresses(bind: Listening, port: number): readonly BindAddress[] {
  const { addresses = [bind.host], socketMode: mode = DEFAULT_SOCKET_MODE } = bind;
  return addresses.map((text) =>
    text.startsWith(UNIX) ? { path: text.slice(UNIX.length), mode } : { host: text, port },
  );
}

/** For people: `[::]:8080`, `unix:/run/app.sock`, or several with commas. */
export function formatBindAddresses(bind: Listening, port: number): string {
  return bindAddresses(bind, port).map(formatBindAddress).join(", ");
}

export function formatBindAddress(address: BindAddress): string {
  return "path" in address ? `${UNIX}${address.path}` : formatHostPort(address.host, address.port);
}

/** Whether a bind has a port, which one on nothing but Unix sockets does not. */
export function hasPort(bind: Listening): boolean {
  return bindAddresses(bind, 0).some((address) => "host" in address);
}

/**
 * How surely a client of `host`, an IP address, reaches this bind: 2 = it listens at that address, 1 = at all addresses of the family, 0 =
 * not at all. With several binds on one port, the system gives a connection to the one that is most specific.
 */
export function reach(bind: Listening, host: string): 0 | 1 | 2 {
  const wanted = ipBytes(host);
  if (wanted === undefined) return 0;
  let best: 0 | 1 | 2 = 0;
  for (const address of bindAddresses(bind, 0)) {
    const bytes = "host" in address ? ipBytes(address.host) : undefined;
    if (bytes === undefined) continue;
    if (bytes.join(".") === wanted.join(".")) return 2;
    // `::` takes connections of both families.
    if (isUnspecified(bytes) && (bytes.length === 16 || wanted.length === 4)) best = 1;
  }
  return best;
}

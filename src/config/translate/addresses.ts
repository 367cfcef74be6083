import { isIP } from "node:net";
import { isUnspecified } from "../../base/host-addresses.ts";
import { canonicalAddress, ipBytes } from "../../base/ip-address.ts";
import { collide, formatHostPort, formatListenAddress, type ListenAddress } from "../../base/listen-address.ts";
import type { Path } from "../../base/paths.ts";
import { type BindAddress, bindAddresses, formatBindAddress } from "../../ir/bind-addresses.ts";
import type { Bind } from "../../ir/ir.ts";
import type { Report } from "../../translation/problems/problem.ts";
import type { BindInput, GatewayInput } from "../schema/listeners.ts";

/** Where a bind listens, and how its keys name that. */
interface ListeningAt extends Pick<Bind, "addresses" | "socketMode"> {
  /** `8080`, `127.0.0.1:8080`, `unix:/run/app.sock`; several are joined by commas. */
  readonly label: string;
}

/** sun_path holds 108 bytes with its final zero; the name under which the socket is made has a process id at its end. */
const MAX_UNIX_PATH = 96;

/** `address`, `socketMode` and `port` of a bind or gateway. */
export function listeningAt(
  { address, socketMode, port }: Pick<BindInput | GatewayInput, "address" | "socketMode" | "port">,
  path: Path,
  report: Report,
): ListeningAt {
  const written = address === undefined ? [] : typeof address === "string" ? [address] : address;
  const placeOf = (i: number): Path => (typeof address === "string" ? [...path, "address"] : [...path, "address", i]);
  const addresses = written.map((text, i) => {
    const { problem, canonical } = parse(text);
    if (problem !== undefined) report(placeOf(i), { message: problem });
    return canonical;
  });
  for (const [i, text] of addresses.entries())
    if (addresses.indexOf(text) < i) report(placeOf(i), { message: `${text} is in the list twice` });
  const hosts = addresses.filter((text) => !isUnix(text));
  if (written.length > 0 && hosts.length === 0 && port !== undefined)
    report([...path, "port"], { message: "has no effect, because every address is a Unix socket; remove it" });
  if (port === 0 && hosts.length > 1)
    report([...path, "port"], { message: "0 can be used with one address only; choose a port for all of them" });
  if (socketMode !== undefined && hosts.length === addresses.length)
    report([...path, "socketMode"], { message: "applies only to addresses that begin with unix:, and none does" });
  if (addresses.length === 0) return { label: String(port ?? 0) };
  return {
    addresses,
    ...(socketMode !== undefined && { socketMode: Number.parseInt(socketMode, 8) }),
    label: addresses.map((text) => (isUnix(text) ? text : formatHostPort(text, port ?? 0))).join(","),
  };
}

function isUnix(text: string): boolean {
  return text.startsWith("unix:");
}

function parse(text: string): { readonly canonical: string; readonly problem?: string } {
  if (isUnix(text)) {
    const path = text.slice("unix:".length);
    if (!path.startsWith("/"))
      return { canonical: text, problem: `needs an absolute path after unix:, such as unix:/run/app.sock` };
    if (Buffer.byteLength(path) > MAX_UNIX_PATH)
      return { canonical: text, problem: `the path of a Unix socket has at most ${MAX_UNIX_PATH} bytes` };
    return { canonical: text };
  }
  if (isIP(text) !== 0) return { canonical: canonicalAddress(text) ?? text };
  return { canonical: text, problem: `"${text}" is neither an IP address nor unix:/path; ${cureOf(text)}` };
}

function cureOf(text: string): string {
  if (text === "localhost") return 'write 127.0.0.1, or [127.0.0.1, "::1"] for both families';
  if (text === "*" || text === "") return "leave address out to listen at all addresses";
  const [, bracketed, port] = /^\[(.+)\](?::(\d+))?$/.exec(text) ?? [];
  if (bracketed !== undefined) return `write "${bracketed}"${port === undefined ? "" : `, and port: ${port}`}`;
  const [, host, number] = /^([^:]+):(\d+)$/.exec(text) ?? [];
  if (host !== undefined) return `write the port apart: address: ${host}, port: ${number}`;
  if (text.startsWith("/")) return `write unix:${text}`;
  return "names are not looked up, so that the gateway starts without DNS";
}

/** Reports addresses that two binds, or a bind and one of the gateway's own servers, would both listen at. */
export class ClaimedAddresses {
  readonly #owners = new Map<string, { readonly owner: string; readonly path: Path }>();
  readonly #servers: Readonly<Record<string, ListenAddress>>;
  readonly #report: Report;

  constructor(servers: Readonly<Record<string, ListenAddress>>, report: Report) {
    this.#servers = servers;
    this.#report = report;
  }

  claim(bind: Bind, owner: string, path: Path): void {
    const { port, protocol, mode } = bind;
    const udp = protocol === "udp";
    for (const address of bindAddresses(bind, port)) {
      const id = `${idOf(address)} ${udp}`;
      const other = this.#owners.get(id);
      // The same address twice in one list has been reported.
      if (other !== undefined && other.owner !== owner)
        this.#report(placeOf(address, bind, path), {
          message: clash(address, bind, other.owner, owner),
          related: [{ path: other.path, message: "the first" }],
        });
      this.#owners.set(id, { owner, path });
      if (udp || mode === "internal") continue;
      const listening: ListenAddress =
        "path" in address ? { type: "unix", ...address } : { type: "socket", ...address };
      for (const [field, server] of Object.entries(this.#servers))
        if (collide(listening, server))
          this.#report(placeOf(address, bind, path), {
            message:
              "path" in address
                ? `${formatBindAddress(address)} is that of ${field} too; choose another`
                : `port ${port} is that of ${field} (${formatListenAddress(server)}) too; ports must be unique`,
          });
    }
  }
}

function placeOf(address: BindAddress, { addresses }: Bind, path: Path): Path {
  return "path" in address && addresses !== undefined ? [...path, "address"] : [...path, "port"];
}

function idOf(address: BindAddress): string {
  return "path" in address ? address.path : `${address.host} ${address.port}`;
}

function clash(address: BindAddress, { port, protocol, addresses }: Bind, other: string, owner: string): string {
  const udp = protocol === "udp" ? "UDP " : "";
  if ("path" in address)
    return `${formatBindAddress(address)} is configured by both ${other} and ${owner}; paths must be unique`;
  if (port === 0) return `${other} has port 0 too; only one port may be left to the system`;
  if (addresses === undefined)
    return `${udp}port ${port} is configured by both ${other} and ${owner}; ports must be unique`;
  return `${udp}port ${port} at ${address.host} is configured by both ${other} and ${owner}; give one of them another port or address`;
}

/** Whether a backend at `host`, text that may be a name, would certainly reach a bind at `own` of this host. */
export function reaches(host: string, own: string): boolean {
  const there = ipBytes(own);
  if (there === undefined) return false;
  const bytes = host.toLowerCase() === "localhost" ? ipBytes("127.0.0.1") : ipBytes(host);
  if (bytes === undefined || isUnspecified(there)) return true;
  return isUnspecified(bytes) || bytes.join(".") === there.join(".");
}

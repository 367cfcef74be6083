import type { Server } from "node:http";
import type { ListenOptions } from "node:net";
import { codeOf, messageOf } from "../../base/errors.ts";
import type { InheritedSockets } from "../../base/inherited-sockets.ts";
import {
  formatHostPort,
  isWithoutIpv6,
  type ListenAddress,
  listenAt,
  RESERVED_PORT_REMEDY,
} from "../../base/listen-address.ts";
import type { OwnSockets } from "../../base/own-sockets.ts";
import { claimSocketFile, listenAtFile, type SocketFile } from "../../base/socket-file.ts";

/** A server to start; `create` makes one instance per socket address. */
interface ListenTarget {
  /** For messages, such as `admin`. */
  readonly name: string;
  /** The setting that holds the address, such as `adminAddr`. */
  readonly setting: string;
  readonly create: () => Server;
  readonly own: OwnSockets;
  /** Sockets that are used instead of new ones. */
  readonly inherited?: InheritedSockets | undefined;
}

interface Listening {
  readonly servers: readonly Server[];
  /** `127.0.0.1:15000`, `[::1]:15000` or `unix:/path`, with the ports the system chose. */
  readonly addresses: readonly string[];
  /** Of a Unix socket. */
  readonly file?: SocketFile;
}

const PORT_TRIES = 10;

/** @throws Error that names the server, the address, the reason and what to do */
export async function listen(address: ListenAddress, target: ListenTarget): Promise<Listening> {
  switch (address.type) {
    case "off":
      return { servers: [], addresses: [] };
    case "unix":
      return listenUnix(address.path, target);
    case "localhost":
      return listenLocalhost(address.port, target);
    case "socket":
      return listenSocket(address.host, address.port, target);
  }
}

async function listenSocket(host: string, port: number, target: ListenTarget): Promise<Listening> {
  const server = target.create();
  const at = await listenAt(host, async (each) => {
    const fd = target.inherited?.take(formatHostPort(each, port));
    await bind(server, fd === undefined ? { host: each, port } : { fd }, target);
    return each;
  }).catch((error: unknown) => {
    throw refused(target, formatHostPort(host, port), error);
  });
  return { servers: [server], addresses: [formatHostPort(at, portOf(server))] };
}

/** Both loopback addresses on one port. */
async function listenLocalhost(port: number, target: ListenTarget, tries = PORT_TRIES): Promise<Listening> {
  const first = await listenSocket("127.0.0.1", port, target);
  const [v4] = first.servers;
  if (v4 === undefined) return first;
  const server = target.create();
  const chosen = portOf(v4);
  try {
    const fd = target.inherited?.take(formatHostPort("::1", chosen));
    await bind(server, fd === undefined ? { host: "::1", port: chosen } : { fd }, target);
  } catch (error) {
    if (isWithoutIpv6(error)) return first;
    await closed(v4);
    // The system chose a port that is free on 127.0.0.1 only: try another.
    if (port === 0 && tries > 1) return listenLocalhost(port, target, tries - 1);
    throw refused(target, formatHostPort("::1", chosen), error);
  }
  return { servers: [v4, server], addresses: [...first.addresses, formatHostPort("::1", chosen)] };
}

async function listenUnix(path: string, target: ListenTarget): Promise<Listening> {
  const server = target.create();
  const fd = target.inherited?.take(`unix:${path}`);
  if (fd !== undefined) {
    await bind(server, { fd }, target, () => target.own.addUnix(path));
    // The file stays: systemd, or a process that takes over in turn, may have the socket too.
    return { servers: [server], addresses: [`unix:${path}`] };
  }
  await removeStale(path, target);
  let file: SocketFile;
  try {
    file = await listenAtFile(server, path, 0o600, { exclusive: true });
    server.once("close", target.own.addUnix(path));
  } catch (error) {
    await closed(server);
    throw refused(target, `unix:${path}`, error);
  }
  return { servers: [server], addresses: [`unix:${path}`], file };
}

/** Removes the socket file of a dead process. Throws if a process listens on it, or if it is another kind of file. */
async function removeStale(path: string, target: ListenTarget): Promise<void> {
  const problem = await claimSocketFile(path);
  if (problem === "other file")
    throw new Error(`${target.name} server: ${path} exists and is not a socket; remove it or change ${target.setting}`);
  if (problem === "in use")
    throw new Error(`${target.name} server: another process listens on ${path}; stop it or change ${target.setting}`);
}

/** `record` notes the socket as one of the gateway's own. */
function bind(
  server: Server,
  options: ListenOptions & { readonly fd?: number },
  { own }: ListenTarget,
  record = () => own.addPort("tcp", "server", portOf(server)),
): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen({ ...options, exclusive: true }, () => {
      server.off("error", reject);
      server.once("close", record());
      resolve();
    });
  });
}

/** Stops listening. Safe for a server that never listened. */
function closed(server: Server): Promise<void> {
  return new Promise((resolve) => server.close(() => resolve()));
}

function portOf(server: Server): number {
  const address = server.address();
  return typeof address === "object" && address !== null ? address.port : 0;
}

function refused({ name, setting }: ListenTarget, address: string, cause: unknown): Error {
  const reasons: Readonly<Record<string, string>> = {
    EADDRINUSE: `is in use; stop what listens there or change ${setting}`,
    EACCES: `is not permitted to this user; change ${setting} to a port above 1023, ${RESERVED_PORT_REMEDY}`,
    EADDRNOTAVAIL: `is not an address of this machine; change ${setting}`,
  };
  const reason = reasons[codeOf(cause) ?? ""] ?? `cannot be used: ${messageOf(cause)}`;
  return new Error(`${name} server: ${address} ${reason}`, { cause });
}

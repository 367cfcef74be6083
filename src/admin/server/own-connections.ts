/**
 * The second line of defense around the gateway's own servers, independent of the check in net/egress.ts: a connection whose other end is a
 * socket of this process is closed, however it came about. Clients need no credential, so `curl`, port-forwards and tgctl keep working.
 * Only connections from addresses of this host are examined, and only on Linux, which lists sockets in `/proc`.
 */
import { readdir, readFile, readlink } from "node:fs/promises";
import type { Server } from "node:http";
import type { Socket } from "node:net";
import { endianness } from "node:os";
import { asError } from "../../base/errors.ts";
import { isOfThisHost } from "../../base/host-addresses.ts";
import { addressOfBytes, ipBytes } from "../../base/ip-address.ts";
import { formatHostPort } from "../../base/listen-address.ts";
import type { Logger } from "../../base/log.ts";
import type { OwnSockets } from "../../base/own-sockets.ts";
import { SharedLook } from "./shared-look.ts";

/** Links read at a time. */
const BATCH = 256;

/** Closes connections from this process, before other listeners for new connections see them. */
export function closeOwnConnections(server: Server, name: string, own: OwnSockets, log: Logger): void {
  const listeners = server.listeners("connection");
  const descriptors = new SharedLook(ownSockets);
  const tables = new SharedLook(readTables);
  const logClosed = (peer: "own" | "gone", address: string, localPort: number): void => {
    const from = own.callersOf(localPort).join(", ");
    const fields = { server: name, peer: address, from: from || "unknown" };
    if (peer === "own") log.warn("closed a connection of the gateway to its own server", fields);
    // Its owner can no longer be found. If the configuration leads to this port, it may have been the gateway.
    else if (from !== "")
      log.warn("closed a connection whose other end is gone; it may have been the gateway's", fields);
  };
  server.removeAllListeners("connection");
  server.on("connection", (socket: Socket) => {
    const serve = (): void => {
      for (const listener of listeners) listener.call(server, socket);
    };
    const { remoteAddress, remotePort = 0, localPort = 0 } = socket;
    // Clients of a Unix socket have no address, and neither has a TCP client that has reset its connection, although its bytes can still be read.
    const local = remoteAddress === undefined ? typeof server.address() !== "string" : isOfThisHost(remoteAddress);
    if (!own.guarded || process.platform !== "linux" || !local) {
      serve();
      return;
    }
    if (remoteAddress === undefined) {
      socket.destroy();
      logClosed("gone", "unknown", localPort);
      return;
    }
    const failed = (): void => {};
    socket.on("error", failed);
    const examine = async (): Promise<"own" | "foreign" | "gone"> => {
      const inodes = inodesOfPeer(socket, await tables.next());
      // A client that has already closed its socket does not wait for a response, so closing the connection does no harm.
      if (inodes.length === 0) return "gone";
      const ours = await descriptors.next();
      return inodes.some((inode) => ours.has(`socket:[${inode}]`)) ? "own" : "foreign";
    };
    examine()
      .catch((error: unknown) => {
        log.error("cannot identify the client of a connection", { server: name, error: asError(error) });
        // If the client cannot be identified, the connection is closed: probes and clients try again.
        return "gone" as const;
      })
      .then((peer) => {
        if (peer === "foreign" && !socket.destroyed) {
          socket.off("error", failed);
          serve();
          return;
        }
        socket.destroy();
        // Also of one that has given up meanwhile.
        if (peer !== "foreign") logClosed(peer, formatHostPort(remoteAddress, remotePort), localPort);
      });
  });
}

/** The link targets of this process's descriptors, such as `socket:[4711]`. */
async function ownSockets(): Promise<ReadonlySet<string>> {
  const found = new Set<string>();
  const descriptors = await readdir("/proc/self/fd");
  for (let from = 0; from < descriptors.length; from += BATCH) {
    const links = descriptors.slice(from, from + BATCH).map((fd) => readlink(`/proc/self/fd/${fd}`).catch(() => ""));
    for (const link of await Promise.all(links)) found.add(link);
  }
  return found;
}

/** The connections of this network namespace. */
async function readTables(): Promise<readonly string[]> {
  const read = (table: string): Promise<string> =>
    // There is no second table if IPv6 is disabled.
    readFile(`/proc/self/net/${table}`, "latin1").catch((error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT" && table === "tcp6") return "";
      throw error;
    });
  return Promise.all(["tcp", "tcp6"].map(read));
}

/** The inodes of the sockets that may be the other end of a connection; none if it is gone. */
function inodesOfPeer(
  { remoteAddress, remotePort, localAddress, localPort }: Socket,
  tables: readonly string[],
): readonly string[] {
  const peer = `${ipBytes(remoteAddress ?? "")?.join(".")} ${remotePort}`;
  const here = `${ipBytes(localAddress ?? "")?.join(".")} ${localPort}`;
  const translated: string[] = [];
  for (const table of tables) {
    // Compared as text first: the port is at the end of the second column.
    for (const [row] of table.matchAll(new RegExp(` \\w+:${hexPort(remotePort)} \\w+:\\w{4} .*`, "g"))) {
      const [local = "", remote = "", , , , , , , inode = "0"] = row.trim().split(/\s+/);
      if (endOf(local) !== peer) continue;
      // Sockets that their process has closed have inode 0.
      if (endOf(remote) === here) return inode === "0" ? [] : [inode];
      if (inode !== "0") translated.push(inode);
    }
  }
  // Rules of the host, such as REDIRECT, send connections for other addresses here; the client's end shows the original address.
  return translated;
}

function hexPort(port = 0): string {
  return port.toString(16).toUpperCase().padStart(4, "0");
}

/** `0100007F:3A98` as the bytes of the address and the port: words of 32 bits in the order of the machine. */
function endOf(text: string): string {
  const [address = "", port = ""] = text.split(":");
  const bytes = Buffer.from(address, "hex");
  if (endianness() === "LE") bytes.swap32();
  const literal = bytes.length === 4 ? bytes.join(".") : addressOfBytes(bytes);
  return `${ipBytes(literal)?.join(".")} ${Number.parseInt(port, 16)}`;
}

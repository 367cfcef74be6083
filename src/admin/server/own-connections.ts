/**
 * The second line of defense around the gateway's own servers, independent of the check in net/egress.ts: a connection whose other
 * end is a socket of this process is closed, whatever way led to it. No credential is needed, so `curl`, port-forwards and tgctl go on
 * working. Only connections from addresses of this host are examined, and only on Linux, where the system can be asked.
 */
import { readdir, readFile, readlink } from "node:fs/promises";
import type { Server } from "node:http";
import type { Socket } from "node:net";
import { endianness } from "node:os";
import { asError } from "../../base/errors.ts";
import { isOfThisHost } from "../../base/host-addresses.ts";
import { ipBytes } from "../../base/ip-bytes.ts";
import { formatHostPort } from "../../base/listen-address.ts";
import type { Logger } from "../../base/log.ts";
import type { OwnSockets } from "../../base/own-sockets.ts";

/** Links that are read at a time. */
const BATCH = 256;

/** Closes connections that this process has opened itself, before the other listeners for new connections see them. */
export function closeOwnConnections(server: Server, name: string, own: OwnSockets, log: Logger): void {
  const listeners = server.listeners("connection");
  server.removeAllListeners("connection");
  server.on("connection", (socket: Socket) => {
    const serve = (): void => {
      for (const listener of listeners) listener.call(server, socket);
    };
    const { remoteAddress } = socket;
    // Clients of a Unix socket have no address.
    if (!own.guarded || process.platform !== "linux" || remoteAddress === undefined || !isOfThisHost(remoteAddress)) {
      serve();
      return;
    }
    const failed = (): void => {};
    socket.on("error", failed);
    isOwnConnection(socket)
      .catch((error: unknown) => {
        log.error("cannot tell who has connected", { server: name, error: asError(error) });
        // Without an answer the connection is closed: probes and clients try again.
        return true;
      })
      .then((isOwn) => {
        if (socket.destroyed) return;
        if (!isOwn) {
          socket.off("error", failed);
          serve();
          return;
        }
        const { localPort = 0, remotePort = 0 } = socket;
        log.warn("closed a connection of the gateway to its own server", {
          server: name,
          peer: formatHostPort(remoteAddress, remotePort),
          from: own.callersOf(localPort).join(", ") || "unknown",
        });
        socket.destroy();
      });
  });
}

/** Whether a socket of this process is the other end of a connection. */
async function isOwnConnection(socket: Socket): Promise<boolean> {
  const inode = await inodeOfPeer(socket);
  if (inode === undefined) return false;
  const link = `socket:[${inode}]`;
  const descriptors = await readdir("/proc/self/fd");
  for (let from = 0; from < descriptors.length; from += BATCH) {
    const links = descriptors.slice(from, from + BATCH).map((fd) => readlink(`/proc/self/fd/${fd}`).catch(() => ""));
    if ((await Promise.all(links)).includes(link)) return true;
  }
  return false;
}

/** The inode of the socket at the other end; undefined if it is in another network namespace, or gone. */
async function inodeOfPeer({
  remoteAddress,
  remotePort,
  localAddress,
  localPort,
}: Socket): Promise<string | undefined> {
  const peer = `${ipBytes(remoteAddress ?? "")?.join(".")} ${remotePort}`;
  const here = `${ipBytes(localAddress ?? "")?.join(".")} ${localPort}`;
  for (const table of ["tcp", "tcp6"]) {
    // Without IPv6 there is no second table.
    const text = await readFile(`/proc/self/net/${table}`, "latin1").catch((error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") return "";
      throw error;
    });
    // Compared as text first: the ports are at the ends of the second and third column.
    const ports = new RegExp(` \\w+:${hexPort(remotePort)} \\w+:${hexPort(localPort)} .*`, "g");
    for (const [row] of text.matchAll(ports)) {
      const [local = "", remote = "", , , , , , , inode] = row.trim().split(/\s+/);
      if (endOf(local) === peer && endOf(remote) === here) return inode;
    }
  }
  return undefined;
}

function hexPort(port = 0): string {
  return port.toString(16).toUpperCase().padStart(4, "0");
}

/** `0100007F:3A98` as the bytes of the address and the port: words of 32 bits in the order of the machine. */
function endOf(text: string): string {
  const [address = "", port = ""] = text.split(":");
  const bytes = Buffer.from(address, "hex");
  if (endianness() === "LE") bytes.swap32();
  const literal =
    bytes.length === 4
      ? bytes.join(".")
      : Array.from({ length: 8 }, (_, i) => bytes.readUInt16BE(2 * i).toString(16)).join(":");
  return `${ipBytes(literal)?.join(".")} ${Number.parseInt(port, 16)}`;
}

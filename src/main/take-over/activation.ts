import { readFileSync, readlinkSync } from "node:fs";
import type { InheritedSocket } from "../../base/inherited-sockets.ts";
import { addressOfBytes } from "../../base/ip-address.ts";
import { formatHostPort } from "../../base/listen-address.ts";

/** The first file descriptor that systemd passes (sd_listen_fds(3)). */
const FIRST_FD = 3;
/** `TCP_LISTEN` in /proc/net/tcp. */
const LISTENING = "0A";

/**
 * The sockets of a systemd socket unit (`LISTEN_FDS`). Node.js does not tell where a socket listens before it accepts from it, so the tables
 * of the kernel say it; those of UDP and others are left out. Empty without a socket unit.
 */
export function activatedSockets(env: NodeJS.ProcessEnv): InheritedSocket[] {
  const { LISTEN_FDS, LISTEN_PID } = env;
  delete env.LISTEN_FDS;
  delete env.LISTEN_PID;
  delete env.LISTEN_FDNAMES;
  if (LISTEN_PID !== String(process.pid)) return [];
  const addresses = listeningAddresses();
  return Array.from({ length: Number(LISTEN_FDS) }, (_, i) => FIRST_FD + i).flatMap((fd) => {
    const [, inode = ""] = /^socket:\[(\d+)\]$/.exec(linkOf(fd)) ?? [];
    const address = addresses.get(inode);
    return address === undefined ? [] : [{ fd, address }];
  });
}

function linkOf(fd: number): string {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`);
  } catch {
    return "";
  }
}

/** By inode. */
function listeningAddresses(): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  for (const table of ["tcp", "tcp6"])
    for (const line of rowsOf(table)) {
      const [, local = "", , state, , , , , , inode = ""] = line.trim().split(/\s+/);
      const [host = "", port = ""] = local.split(":");
      if (state === LISTENING) found.set(inode, formatHostPort(addressOf(host), Number.parseInt(port, 16)));
    }
  for (const line of rowsOf("unix")) {
    const [, , , , , , inode = "", path] = line.trim().split(/\s+/);
    if (path?.startsWith("/")) found.set(inode, `unix:${path}`);
  }
  return found;
}

function rowsOf(table: string): string[] {
  try {
    return readFileSync(`/proc/self/net/${table}`, "utf8").trimEnd().split("\n").slice(1);
  } catch {
    return [];
  }
}

/** The kernel writes addresses as numbers of four bytes in the order of the machine, which is little-endian wherever Node.js runs. */
function addressOf(hex: string): string {
  const bytes = Buffer.from(hex, "hex");
  for (let at = 0; at < bytes.length; at += 4) bytes.subarray(at, at + 4).reverse();
  return bytes.length === 4 ? bytes.join(".") : addressOfBytes(bytes);
}

import { chmodSync, lstatSync, mkdirSync, readdirSync, type Stats } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

type Environment = Readonly<Record<string, string | undefined>>;

const SOCKET = /^(\d+)\.sock$/;

/**
 * Where gateways of this user can be asked to hand over: the RuntimeDirectory= of a systemd unit, else the user's own runtime folder, else a
 * folder for temporary files. Only this user can enter it, which is what makes the sockets inside safe.
 */
function folderOf({ RUNTIME_DIRECTORY, XDG_RUNTIME_DIR }: Environment): string {
  const [ofUnit = ""] = RUNTIME_DIRECTORY?.split(":", 1) ?? [];
  if (ofUnit !== "") return ofUnit;
  const uid = process.getuid?.() ?? 0;
  return XDG_RUNTIME_DIR ? join(XDG_RUNTIME_DIR, "tracegate") : join(tmpdir(), `tracegate-${uid}`);
}

/** The path of this process's socket. Throws if the folder cannot be made, or if others could enter it. */
export function ownSocketPath(env: Environment): string {
  const folder = folderOf(env);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const stats = lstatSync(folder);
  if (!isOwn(stats)) throw new Error(`${folder} belongs to another user`);
  if (!isPrivate(stats)) chmodSync(folder, 0o700);
  return join(folder, `${process.pid}.sock`);
}

/**
 * The sockets of gateways, living or dead, by process id. None in a folder that others could enter: a request carries the environment of the
 * command, with its secrets, and anybody can make the folder for temporary files first.
 */
export function socketPaths(env: Environment): ReadonlyMap<number, string> {
  const folder = folderOf(env);
  try {
    const stats = lstatSync(folder);
    if (!isOwn(stats) || !isPrivate(stats)) return new Map();
    const named = readdirSync(folder).flatMap((name): [number, string][] => {
      const [, pid] = SOCKET.exec(name) ?? [];
      return pid === undefined ? [] : [[Number(pid), join(folder, name)]];
    });
    return new Map(named);
  } catch {
    return new Map();
  }
}

function isOwn({ uid }: Stats): boolean {
  return uid === process.getuid?.();
}

function isPrivate({ mode }: Stats): boolean {
  return (mode & 0o077) === 0;
}

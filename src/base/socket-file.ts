import { chmodSync, lstatSync, renameSync, rmSync, unlinkSync } from "node:fs";
import { connect, type Server } from "node:net";

/**
 * Makes room for a Unix socket: removes the file of one on which nobody listens, as a killed process leaves it. Resolves with the reason if
 * the path cannot be used: another kind of file is there, or a process listens on the socket.
 */
export async function claimSocketFile(path: string): Promise<"other file" | "in use" | undefined> {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  if (stats === undefined) return undefined;
  if (!stats.isSocket()) return "other file";
  if (await isServed(path)) return "in use";
  // Another process may have removed it meanwhile.
  rmSync(path, { force: true });
  return undefined;
}

function isServed(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path);
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
    // A socket whose queue is full, or that this user may not open, is served too.
    socket.once("error", ({ code }: NodeJS.ErrnoException) => resolve(code !== "ECONNREFUSED" && code !== "ENOENT"));
  });
}

/**
 * Has a server listen at `path`, which must be free. The file gets its name only once it has its permissions, so nobody connects in between.
 * Node.js removes the file of a server that closes by the name that it was bound to; the last name is removed here, unless it is the name
 * of another process's socket by then, or this socket lives on in another process.
 */
export async function listenAtFile(server: Server, path: string, mode: number, options: object): Promise<SocketFile> {
  const made = `${path}.${process.pid}`;
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen({ ...options, path: made }, () => {
      server.off("error", reject);
      resolve();
    });
  });
  try {
    chmodSync(made, mode);
    renameSync(made, path);
  } catch (error) {
    server.close();
    throw error;
  }
  return new SocketFile(server, path);
}

/** The file of a listening socket that this process has made, which goes with it. */
export class SocketFile {
  #kept = false;

  constructor(server: Server, path: string) {
    const { ino } = lstatSync(path);
    server.once("close", () => {
      if (!this.#kept && lstatSync(path, { throwIfNoEntry: false })?.ino === ino) unlinkSync(path);
    });
  }

  /** Another process has the socket: the file stays. */
  keep(): void {
    this.#kept = true;
  }
}

import { lstatSync, unlinkSync } from "node:fs";
import { connect } from "node:net";

/**
 * Makes room for a Unix socket: removes the file of one on which nobody listens, as a killed process leaves it. Resolves with the reason if
 * the path cannot be used: another kind of file is there, or a process listens on the socket.
 */
export async function claimSocketFile(path: string): Promise<"other file" | "in use" | undefined> {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  if (stats === undefined) return undefined;
  if (!stats.isSocket()) return "other file";
  if (await isServed(path)) return "in use";
  unlinkSync(path);
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

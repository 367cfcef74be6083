import { randomBytes } from "node:crypto";
import { accessSync, constants, mkdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { startInternalServer } from "../admin/internal-server.ts";
import type { AdminPlane } from "../admin/plane/plane.ts";
import type { RunningServer } from "../admin/server/http-server.ts";
import { messageOf } from "../base/errors.ts";
import type { Logger } from "../base/log.ts";
import type { OwnSockets } from "../base/own-sockets.ts";
import type { PackedIr } from "../ir/packed-ir.ts";

/** Containers whose file system is read-only have the second one. */
const FOLDERS = [tmpdir(), "/dev/shm"];

/**
 * The admin API for `internal` backends: a Unix socket in a folder that only this user can enter. It is made with the first
 * configuration that has such a backend.
 */
export class InternalApi {
  /** Path of the socket. The name is random, so that another user of the folder cannot create it first. */
  readonly socket: string;
  readonly #folders: readonly string[];
  #server: RunningServer | undefined;

  /** The socket is made in the first of these folders that can be written to. */
  constructor(folders: readonly string[] = FOLDERS) {
    this.#folders = folders;
    const parent = folders.find(isWritable) ?? folders[0] ?? "";
    this.socket = join(parent, `tracegate-${randomBytes(8).toString("hex")}`, "admin.sock");
  }

  /** Starts the server if this configuration needs it. Rejects if the socket cannot be made. */
  async prepare({ internal }: PackedIr, plane: AdminPlane, log: Logger, own: OwnSockets): Promise<void> {
    if (this.#server !== undefined || !internal) return;
    const folder = dirname(this.socket);
    try {
      mkdirSync(folder, { mode: 0o700 });
    } catch (error) {
      const places = this.#folders.join(" nor ");
      throw new Error(
        `internal backends need a socket, and neither ${places} can be written to; mount a folder there, such as --tmpfs /tmp, or set TMPDIR (${messageOf(error)})`,
        { cause: error },
      );
    }
    try {
      this.#server = await startInternalServer(plane, this.socket, log, own);
    } catch (error) {
      rmSync(folder, { recursive: true, force: true });
      throw error;
    }
  }

  async close(): Promise<void> {
    const server = this.#server;
    if (server === undefined) return;
    this.#server = undefined;
    await server.close();
    rmSync(dirname(this.socket), { recursive: true, force: true });
  }
}

function isWritable(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

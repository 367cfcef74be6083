import { randomBytes } from "node:crypto";
import { mkdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { startInternalServer } from "../admin/internal-server.ts";
import type { AdminPlane } from "../admin/plane.ts";
import type { RunningServer } from "../admin/server/http-server.ts";
import type { Logger } from "../base/log.ts";
import type { PackedIr } from "../ir/packed-ir.ts";

/**
 * The admin API for `internal` backends: a Unix socket in a folder that only this user can enter. It is made with the first
 * configuration that has such a backend.
 */
export class InternalApi {
  /** Path of the socket. The name is random, so that another user of /tmp cannot create it first. */
  readonly socket = join(tmpdir(), `tracegate-${randomBytes(8).toString("hex")}`, "admin.sock");
  #server: RunningServer | undefined;

  /** Starts the server if this configuration needs it. Rejects if the socket cannot be made. */
  async prepare({ internal }: PackedIr, plane: AdminPlane, log: Logger): Promise<void> {
    if (this.#server !== undefined || !internal) return;
    const folder = dirname(this.socket);
    mkdirSync(folder, { mode: 0o700 });
    try {
      this.#server = await startInternalServer(plane, this.socket, log);
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

/**
 * The running gateway's side of an upgrade without a gap (docs/production.md#upgrades-on-one-host): on request it starts the new process
 * with copies of its listening sockets, and drains once that serves. A new process that fails changes nothing here.
 *
 * The sockets are passed on as a child inherits them, which Node.js documents. Two sockets on one port (SO_REUSEPORT) would not do: when the
 * old one closes, the system resets the connections that wait on it (decision 27).
 */
import { type ChildProcess, spawn } from "node:child_process";
import { rmSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { asError, messageOf } from "../../base/errors.ts";
import type { InheritedSocket } from "../../base/inherited-sockets.ts";
import type { Logger } from "../../base/log.ts";
import type { OwnSockets } from "../../base/own-sockets.ts";
import { claimSocketFile, listenAtFile } from "../../base/socket-file.ts";
import { ownSocketPath, socketPaths } from "./folder.ts";
import { INHERITED, readRequest, readSuccessorMessage, type TakeOverAnswer, type TakeOverRequest } from "./messages.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** The gateway as a take-over needs it. */
interface Predecessor {
  readonly draining: boolean;
  readonly ownSockets: OwnSockets;
  withSockets<T>(use: (sockets: readonly InheritedSocket[]) => Promise<T>): Promise<T>;
}

/** Bytes of a request: an environment may be large. */
const MAX_REQUEST = 4 * 1024 * 1024;
/** stdin, stdout, stderr and the channel come first. */
const FIRST_FD = 4;

export class TakeOverSocket {
  readonly #gateway: Predecessor;
  readonly #log: Logger;
  readonly #env: Environment;
  readonly #onTaken: () => void;
  #server: Server | undefined;
  #path: string | undefined;
  #busy = false;

  private constructor(gateway: Predecessor, log: Logger, env: Environment, onTaken: () => void) {
    this.#gateway = gateway;
    this.#log = log;
    this.#env = env;
    this.#onTaken = onTaken;
  }

  /**
   * Begins to accept requests of the same user. `onTaken` is called when another process serves. Where no socket can be made, as in a
   * container with a read-only file system, the gateway runs without it.
   */
  static async open(gateway: Predecessor, log: Logger, env: Environment, onTaken: () => void): Promise<TakeOverSocket> {
    const opened = new TakeOverSocket(gateway, log, env, onTaken);
    try {
      const path = ownSocketPath(env);
      // Killed gateways leave theirs.
      await Promise.all(Array.from(socketPaths(env).values(), claimSocketFile));
      const server = createServer((socket) => opened.#serve(socket));
      await listenAtFile(server, path, 0o600, {});
      server.unref();
      server.once("close", gateway.ownSockets.addUnix(path));
      opened.#server = server;
      opened.#path = path;
    } catch (error) {
      log.debug("this gateway cannot be taken over from", { problem: messageOf(error) });
    }
    return opened;
  }

  close(): void {
    this.#server?.close();
    // Now, because the process may end before the server has closed.
    if (this.#path !== undefined) rmSync(this.#path, { force: true });
  }

  #serve(socket: Socket): void {
    let text = "";
    socket.on("error", () => {});
    socket.setEncoding("utf8").on("data", (part: string) => {
      text += part;
      if (text.length > MAX_REQUEST) return void socket.destroy();
      const end = text.indexOf("\n");
      if (end < 0) return;
      socket.removeAllListeners("data").resume();
      void this.#answer(text.slice(0, end), socket).then((answer) => {
        socket.end(`${JSON.stringify(answer)}\n`);
        if (answer.type === "serving") this.#onTaken();
      });
    });
  }

  async #answer(line: string, asker: Socket): Promise<TakeOverAnswer> {
    const request = readRequest(line);
    if (request === undefined)
      return { type: "failed", problem: "the request is not one of this version of tracegate" };
    if (this.#gateway.draining) return { type: "failed", problem: "the gateway is shutting down" };
    if (this.#busy) return { type: "failed", problem: "another process is taking over already" };
    this.#busy = true;
    try {
      const child = await this.#gateway.withSockets(async (sockets) => this.#start(request, sockets));
      this.#log.info("another process takes over", { pid: child.pid ?? 0 });
      const answer = await outcomeOf(child, asker);
      if (answer.type === "failed")
        this.#log.error("the process that should take over failed", { problem: answer.problem });
      return answer;
    } catch (error) {
      this.#log.error("no process could be started to take over", { error: asError(error) });
      return { type: "failed", problem: messageOf(error) };
    } finally {
      this.#busy = false;
    }
  }

  #start({ command, folder, env }: TakeOverRequest, sockets: readonly InheritedSocket[]): ChildProcess {
    const [program = "", ...args] = command;
    const inherited = sockets.map(({ address }, i) => ({ address, fd: FIRST_FD + i }));
    // What systemd passed to this process, because the unit stays the same.
    const { NOTIFY_SOCKET, WATCHDOG_USEC, LISTEN_FDS: _fds, LISTEN_PID: _pid } = this.#env;
    return spawn(program, args, {
      cwd: folder,
      detached: true,
      stdio: ["ignore", "inherit", "inherit", "ipc", ...sockets.map(({ fd }) => fd)],
      env: {
        ...env,
        ...(NOTIFY_SOCKET !== undefined && { NOTIFY_SOCKET }),
        ...(WATCHDOG_USEC !== undefined && { WATCHDOG_USEC, WATCHDOG_PID: undefined }),
        [INHERITED]: JSON.stringify(inherited),
      },
    });
  }
}

/** How the start of the child ends. If whoever asked for it goes away before, the child is stopped. */
function outcomeOf(child: ChildProcess, asker: Socket): Promise<TakeOverAnswer> {
  return new Promise((resolve) => {
    const gone = (): void => void child.kill("SIGKILL");
    const end = (answer: TakeOverAnswer): void => {
      asker.removeListener("close", gone);
      resolve(answer);
    };
    if (asker.destroyed) gone();
    asker.once("close", gone);
    child.once("error", (error) => end({ type: "failed", problem: messageOf(error) }));
    child.on("message", (value) => {
      const message = readSuccessorMessage(value);
      if (message?.type === "failed") end(message);
      if (message?.type !== "serving") return;
      child.unref();
      end({ type: "serving", pid: child.pid ?? 0 });
    });
    child.once("exit", (code, signal) => {
      const how = signal === null ? `exited with code ${code}` : `was ended by ${signal}`;
      end({ type: "failed", problem: `the new process ${how} before it served; its log says why` });
    });
  });
}

/**
 * Notifies systemd if the gateway runs as a unit of `Type=notify` (sd_notify(3)): that it is ready, reloads or stops, a line for
 * `systemctl status`, and that it is alive. Node.js has no datagram sockets of the kind that systemd reads, so the messages go
 * through `systemd-notify`, which is part of systemd; the unit has `NotifyAccess=all` for that.
 */
import type { ExecFileException } from "node:child_process";
import type { Logger } from "../base/log.ts";

type Environment = Readonly<Record<string, string | undefined>>;

export class ServiceManager {
  readonly #log: Logger;
  /** Messages must arrive in the order in which they were sent, and each is sent by a separate process. */
  #queue = Promise.resolve();
  #missing = false;
  /** What systemd shows while the gateway serves; undefined: it starts, reloads or drains. */
  #status: string | undefined;
  #watchdog: NodeJS.Timeout | undefined;

  private constructor(log: Logger) {
    this.#log = log;
  }

  /** undefined where no service manager waits for messages. */
  static of(env: Environment, log: Logger): ServiceManager | undefined {
    const { NOTIFY_SOCKET, WATCHDOG_USEC, WATCHDOG_PID } = env;
    if (NOTIFY_SOCKET === undefined) return undefined;
    const manager = new ServiceManager(log);
    const watched = WATCHDOG_PID === undefined || Number(WATCHDOG_PID) === process.pid;
    if (watched && Number(WATCHDOG_USEC) > 0) manager.#watch(Number(WATCHDOG_USEC) / 1000);
    return manager;
  }

  /** Resolves when systemd has received all messages so far; the process must not end before. */
  get sent(): Promise<void> {
    return this.#queue;
  }

  /** Traffic is served; also the end of a reload. `status` is for people; `asMain`: this process is the main one from now on. */
  ready(status: string, asMain = false): void {
    this.#status = status;
    this.#send("READY=1", `STATUS=${status}`, ...(asMain ? [`MAINPID=${process.pid}`] : []));
  }

  /** Another process is the main one: nothing more is said. */
  retire(): void {
    this.#status = undefined;
    clearInterval(this.#watchdog);
  }

  /** The gateway has read its configuration by itself, because a file has changed. */
  changed(status: string): void {
    if (this.#status === undefined || this.#status === status) return;
    this.#status = status;
    this.#send(`STATUS=${status}`);
  }

  /** The configuration is being read again. */
  reloading(): void {
    this.#status = undefined;
    this.#send("RELOADING=1", `MONOTONIC_USEC=${process.hrtime.bigint() / 1000n}`, "STATUS=Reloading");
  }

  /** The drain has begun. */
  stopping(): void {
    this.#status = undefined;
    clearInterval(this.#watchdog);
    this.#send("STOPPING=1", "STATUS=Draining");
  }

  /** Half of the time after which systemd considers the process dead, as sd_watchdog_enabled(3) recommends. */
  #watch(ms: number): void {
    this.#watchdog = setInterval(() => this.#send("WATCHDOG=1"), ms / 2);
    this.#watchdog.unref();
  }

  #send(...assignments: readonly string[]): void {
    this.#queue = this.#queue.then(() => this.#notify(assignments));
  }

  /**
   * Waits until systemd has read the message, as `systemd-notify` does: systemd identifies the sender by its process, which must
   * still exist.
   */
  #notify(assignments: readonly string[]): Promise<void> {
    if (this.#missing) return Promise.resolve();
    const { execFile } = process.getBuiltinModule("node:child_process");
    // A line break would begin another assignment.
    const args = assignments.map((text) => text.replaceAll("\n", " "));
    return new Promise((resolve) => {
      execFile("systemd-notify", args, { timeout: 20_000 }, (error) => {
        if (error !== null) this.#report(error);
        resolve();
      });
    });
  }

  /** Logged only once for a missing program, since every message would fail the same way. */
  #report(error: ExecFileException): void {
    this.#missing = error.code === "ENOENT";
    const problem = this.#missing
      ? "systemd-notify is not installed, so systemd cannot learn the state; use Type=exec, or install it"
      : error.message.trim();
    this.#log.warn("the service manager could not be notified", { problem });
  }
}

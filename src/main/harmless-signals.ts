import { isatty } from "node:tty";

/**
 * Signals that by default end a process and must not end a gateway. A gateway handles them before it loads the engine, which takes
 * a quarter of a second from the package and longer from a checkout: `systemctl reload` and log rotation do not wait for that.
 */
export class HarmlessSignals {
  /** SIGHUP. Before the gateway runs there is nothing to reload: its follower compares the files with what was read. */
  onReload = (): void => {};
  /** SIGUSR2, which scripts that rotate logs send. For SIGUSR1 see bin/launch.sh. */
  onReopen = (): void => {};
  /** SIGHUP because the terminal was closed, not as a request to reload. */
  onTerminalClosed = (): void => process.exit(129);

  constructor() {
    const hadTerminal = isatty(0);
    process.on("SIGHUP", () => {
      if (hadTerminal && !isatty(0)) this.onTerminalClosed();
      else this.onReload();
    });
    process.on("SIGUSR2", () => this.onReopen());
  }
}

import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { stringify } from "yaml";
import { TRACEGATE } from "./programs.ts";

/** How long a test waits for something that must happen; generous, because machines may be slow. */
const PATIENCE_MS = 90_000;

/** One line of the gateway's JSON log. */
export type LogLine = Readonly<Record<string, unknown>>;

interface LaunchOptions {
  /** Further files and folders of the configuration. */
  readonly files?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Limit of open files of the process. */
  readonly openFiles?: number;
  /** Folder of the control group that the process joins. */
  readonly controlGroup?: string;
}

/** A real gateway process on its own configuration file; the system chooses every port. */
export class TestGateway {
  readonly file: string;
  readonly folder: string;
  readonly process: ChildProcess;
  readonly lines: LogLine[] = [];
  stderr = "";
  /** The process has ended, and all that it has written is in `lines` and `stderr`. */
  #closed = false;
  readonly #end: Promise<void>;
  /** Lines of output that came first and are no longer in `lines`. */
  #forgotten = 0;
  readonly #wakers = new Set<() => void>();

  private constructor(folder: string, file: string, child: ChildProcess) {
    this.folder = folder;
    this.file = file;
    this.process = child;
    let begun = "";
    child.stdout?.setEncoding("utf8").on("data", (text: string) => {
      const lines = (begun + text).split("\n");
      // A process that is killed may leave an incomplete line, which is ignored.
      begun = lines.pop() ?? "";
      for (const line of lines) if (line.startsWith("{")) this.lines.push(JSON.parse(line) as LogLine);
      this.#wake();
    });
    child.stderr?.on("data", (text: Buffer) => {
      this.stderr += text.toString();
      this.#wake();
    });
    this.#end = new Promise((resolve) => {
      child.on("close", () => {
        this.#closed = true;
        this.#wake();
        resolve();
      });
    });
  }

  /**
   * Starts `bin/tracegate -f` on a configuration (an object becomes YAML) and waits until it serves. Admin, stats and
   * readiness ports are chosen by the system unless the configuration says otherwise.
   */
  static async start(config: object | string, options: LaunchOptions = {}): Promise<TestGateway> {
    const gateway = await TestGateway.launch(config, options);
    await gateway.until(() => gateway.ready, "the gateway to be ready");
    return gateway;
  }

  /** As `start`, without waiting: for configurations that must fail. */
  static async launch(config: object | string, options: LaunchOptions = {}): Promise<TestGateway> {
    const folder = await mkdtemp(join(tmpdir(), "tracegate-test-"));
    const file = join(folder, "gateway.yaml");
    await writeFile(file, typeof config === "string" ? config : stringify(withPorts(config)));
    const { openFiles, controlGroup, files = [] } = options;
    const program = [TRACEGATE, ...[file, ...files].flatMap((each) => ["-f", each])];
    const limits = [
      ...(openFiles !== undefined ? [`ulimit -n ${openFiles}`] : []),
      ...(controlGroup !== undefined ? [`echo $$ >${controlGroup}/cgroup.procs`] : []),
    ];
    const [command = "", ...rest] =
      limits.length > 0 ? ["sh", "-c", `${limits.join("; ")}; exec "$@"`, "sh", ...program] : program;
    const child = spawn(command, rest, {
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, LOG_FORMAT: "json", ...options.env },
    });
    return new TestGateway(folder, file, child);
  }

  get ready(): boolean {
    return this.lines.some((line) => line.message === "ready");
  }

  /** The port that a bind listens on, by its key (`bind/0`) or, without one, of the first bind. */
  port(bind?: string): number {
    const line = this.lines.findLast(
      (each) => each.message === "serving" && (bind === undefined || each.bind === bind),
    );
    if (line === undefined) throw new Error(`no bind ${bind ?? ""} is served`);
    return Number(line.port);
  }

  /** `http://127.0.0.1:<port>` of one of the gateway's own servers. */
  url(server: "admin" | "stats" | "readiness"): string {
    const line = this.lines.find((each) => each.message === "listening" && each.server === server);
    if (line === undefined) throw new Error(`no ${server} server`);
    const port = /:(\d+)$/.exec(String(line.address))?.[1];
    return `http://127.0.0.1:${port}`;
  }

  async metricsText(): Promise<string> {
    return (await fetch(`${this.url("stats")}/metrics`)).text();
  }

  /** Waits until `condition` is true; checked after every line of output. Rejects after a bounded time. */
  async until(condition: () => boolean, what: string): Promise<void> {
    const deadline = Date.now() + PATIENCE_MS;
    while (!condition()) {
      if (this.#closed) throw new Error(`the gateway ended while waiting for ${what}: ${this.stderr}`);
      if (Date.now() > deadline)
        throw new Error(`waited too long for ${what}: ${JSON.stringify(this.lines.slice(-5))} ${this.stderr}`);
      await new Promise<void>((resolve) => {
        const waker = (): void => {
          clearTimeout(timer);
          this.#wakers.delete(waker);
          resolve();
        };
        const timer = setTimeout(waker, 100);
        this.#wakers.add(waker);
      });
    }
  }

  /** Drops all but the last `count` lines of output, for long runs. */
  keepLines(count: number): void {
    this.#forgotten += this.lines.splice(0, Math.max(0, this.lines.length - count)).length;
  }

  /** Replaces the configuration file and waits until the gateway has applied or rejected it. */
  async reconfigure(config: object | string): Promise<"applied" | "rejected"> {
    const before = this.#forgotten + this.lines.length;
    // Replaced at once: the gateway must not see half of it.
    const written = `${this.file}.new`;
    await writeFile(written, typeof config === "string" ? config : stringify(withPorts(config)));
    await rename(written, this.file);
    const outcome = (): LogLine | undefined =>
      this.lines
        .slice(Math.max(0, before - this.#forgotten))
        .find(
          (line) => line.message === "configuration reloaded" || String(line.message).startsWith("Failed to reload"),
        );
    await this.until(() => outcome() !== undefined, "the reload");
    return outcome()?.message === "configuration reloaded" ? "applied" : "rejected";
  }

  /** Resolves with the exit code once the process has ended and its output has been read. */
  async exited(): Promise<number | null> {
    await this.#end;
    return this.process.exitCode;
  }

  async stop(): Promise<void> {
    this.process.kill("SIGKILL");
    await this.#end;
    await rm(this.folder, { recursive: true, force: true });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  #wake(): void {
    for (const waker of [...this.#wakers]) waker();
  }
}

/** Adds free ports for the gateway's own servers and a single worker unless the configuration chooses. */
function withPorts(config: object): object {
  const given = (config as { config?: object }).config;
  return {
    ...config,
    config: {
      adminAddr: "127.0.0.1:0",
      statsAddr: "127.0.0.1:0",
      readinessAddr: "127.0.0.1:0",
      workerThreads: 1,
      ...given,
    },
  };
}

/** The smallest useful configuration: one bind on a free port, one route to each `host:port`. */
export function proxyTo(...hosts: string[]): object {
  const backends = hosts.map((host) => ({ host }));
  return { binds: [{ port: 0, listeners: [{ protocol: "HTTP", routes: [{ name: "r", backends }] }] }] };
}

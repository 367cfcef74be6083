import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { stringify } from "yaml";
import { Gateway, StartError } from "../../src/main/gateway.ts";
import { makeLog } from "../../src/main/gateway-log.ts";
import { TRACEGATE } from "./programs.ts";

/** How long a test waits for something that must happen; generous, because machines may be slow. */
const PATIENCE_MS = 90_000;

/** One line of the gateway's JSON log. */
export type LogLine = Readonly<Record<string, unknown>>;

interface GatewayOptions {
  /** Further files and folders of the configuration. */
  readonly files?: readonly string[];
  /** Variables of the environment besides those of the test. */
  readonly env?: Readonly<Record<string, string>>;
}

interface ProcessOptions extends GatewayOptions {
  /** Limit of open files of the process. */
  readonly openFiles?: number;
  /** Folder of the control group that the process joins. */
  readonly controlGroup?: string;
  /** `bin/tracegate` of another installation. */
  readonly program?: string;
}

/** The file of a configuration, and what a gateway on it has logged. */
export abstract class RunningGateway {
  readonly file: string;
  readonly folder: string;
  readonly lines: LogLine[] = [];
  /** The start of a line whose end has not come yet. */
  #begun = "";
  /** Lines of output that came first and are no longer in `lines`. */
  #forgotten = 0;
  readonly #wakers = new Set<() => void>();

  protected constructor(folder: string) {
    this.folder = folder;
    this.file = join(folder, "gateway.yaml");
  }

  /** Why nothing more will be logged; undefined while it may. */
  protected abstract get end(): string | undefined;

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
      if (this.end !== undefined) throw new Error(`the gateway ended while waiting for ${what}: ${this.end}`);
      if (Date.now() > deadline)
        throw new Error(`waited too long for ${what}: ${JSON.stringify(this.lines.slice(-5))}`);
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
    await writeFile(written, textOf(config));
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

  abstract stop(): Promise<void>;

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  /** The next part of the output. What a process that is killed has not completed is ignored. */
  protected write(text: string): void {
    const lines = (this.#begun + text).split("\n");
    this.#begun = lines.pop() ?? "";
    for (const line of lines) if (line.startsWith("{")) this.lines.push(JSON.parse(line) as LogLine);
    this.wake();
  }

  protected wake(): void {
    for (const waker of [...this.#wakers]) waker();
  }
}

/**
 * A whole gateway on its own configuration file, whose main thread is that of the test; workers have theirs. The system chooses
 * every port. It starts with a third of the CPU of a process; where the process matters (signals, exit codes, flags of Node.js,
 * memory), and for starts that must fail, there is `GatewayProcess`, and for the data plane alone `LocalGateway`.
 */
export class TestGateway extends RunningGateway {
  #gateway: Gateway | undefined;

  /**
   * Starts a gateway on a configuration (an object becomes YAML) and waits until it serves. Admin, stats and readiness ports are
   * chosen by the system unless the configuration says otherwise.
   */
  static async start(config: object | string, { files = [], env = {} }: GatewayOptions = {}): Promise<TestGateway> {
    const test = new TestGateway(await mkdtemp(join(tmpdir(), "tracegate-test-")));
    await writeFile(test.file, textOf(config));
    const variables = { ...process.env, LOG_FORMAT: "json", ...env };
    const decoder = new TextDecoder();
    const sink = {
      write: (lines: string | Uint8Array) => test.write(typeof lines === "string" ? lines : decoder.decode(lines)),
      addDropped: () => {},
      addLost: () => {},
      metrics: () => [],
      flush: async () => {},
    };
    try {
      test.#gateway = await Gateway.start(
        { kind: "files", paths: [test.file, ...files] },
        variables,
        (settings) => makeLog(settings, variables, sink),
        () => {},
      );
      // Clients of the test are in the gateway's process.
      test.#gateway.ownSockets.guarded = false;
      await test.until(() => test.ready, "the gateway to be ready");
      return test;
    } catch (error) {
      await test.stop();
      throw error;
    }
  }

  protected override get end(): string | undefined {
    return undefined;
  }

  /** What SIGTERM does to a process. */
  async drain(): Promise<void> {
    await this.#gateway?.shutdown();
  }

  /** Cuts all connections, as the end of a process does. */
  override async stop(): Promise<void> {
    await Promise.all([this.#gateway?.exports.close(0), this.#gateway?.close()]);
    await rm(this.folder, { recursive: true, force: true });
  }
}

/** A gateway in a process of its own, otherwise as `TestGateway`. */
export class GatewayProcess extends RunningGateway {
  readonly process: ChildProcess;
  stderr = "";
  /** The process has ended, and all that it has written is in `lines` and `stderr`. */
  #closed = false;
  readonly #end: Promise<void>;

  private constructor(folder: string, child: ChildProcess) {
    super(folder);
    this.process = child;
    child.stdout?.setEncoding("utf8").on("data", (text: string) => this.write(text));
    child.stderr?.on("data", (text: Buffer) => {
      this.stderr += text.toString();
      this.wake();
    });
    this.#end = new Promise((resolve) => {
      child.on("close", () => {
        this.#closed = true;
        this.wake();
        resolve();
      });
    });
  }

  /** Starts `bin/tracegate -f` and waits until it serves. */
  static async start(config: object | string, options: ProcessOptions = {}): Promise<GatewayProcess> {
    const gateway = await GatewayProcess.launch(config, options);
    await gateway.until(() => gateway.ready, "the gateway to be ready");
    return gateway;
  }

  /** As `start`, without waiting: for configurations that must fail. */
  static async launch(config: object | string, options: ProcessOptions = {}): Promise<GatewayProcess> {
    const folder = await mkdtemp(join(tmpdir(), "tracegate-test-"));
    const file = join(folder, "gateway.yaml");
    await writeFile(file, textOf(config));
    const { openFiles, controlGroup, files = [] } = options;
    const program = [options.program ?? TRACEGATE, ...[file, ...files].flatMap((each) => ["-f", each])];
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
    return new GatewayProcess(folder, child);
  }

  protected override get end(): string | undefined {
    return this.#closed ? this.stderr : undefined;
  }

  /** Resolves with the exit code once the process has ended and its output has been read. */
  async exited(): Promise<number | null> {
    await this.#end;
    return this.process.exitCode;
  }

  override async stop(): Promise<void> {
    this.process.kill("SIGKILL");
    await this.#end;
    await rm(this.folder, { recursive: true, force: true });
  }
}

/** The error with which a gateway does not start on `config`. */
export async function refusedStart(config: object | string, options: GatewayOptions = {}): Promise<string> {
  try {
    await using gateway = await TestGateway.start(config, options);
    throw new Error(`it starts, on port ${gateway.port()}`);
  } catch (error) {
    if (error instanceof StartError) return error.message;
    throw error;
  }
}

function textOf(config: object | string): string {
  return typeof config === "string" ? config : stringify(withPorts(config));
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

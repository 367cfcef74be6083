import type { ConfigError, ConfigStatus } from "../admin/config-status.ts";
import { messageOf } from "../base/errors.ts";
import type { Logger } from "../base/log.ts";
import type { ConfigSource } from "../config/load.ts";
import { loadConfigAside, loadWithResources, type PackedLoad } from "../config/load-thread.ts";
import { formatDiagnostics } from "../config/parse/diagnostics.ts";
import { type Inputs, UNKNOWN } from "../config/parse/inputs.ts";
import type { ResourceStore } from "../config/resources/store.ts";
import { restartRequired, type Settings } from "../config/settings.ts";
import { FileWatch } from "../config/watch.ts";
import { WorkersDied } from "../worker/supervisor.ts";

export type Loaded = Extract<PackedLoad, { ok: true }>;

/** First pause before what was refused is tried again; it doubles each time. */
const FIRST_RETRY_MS = 1000;
const LONGEST_RETRY_MS = 30_000;
/** A configuration that ends workers harms those that serve: after so many more attempts it waits for a change. */
const DEADLY_RETRIES = 3;

/** Who puts configurations in force. */
interface Host {
  /** In every worker, or in none: rejects with the reason. */
  apply(generation: number, loaded: Loaded): Promise<void>;
  /** It is in force. */
  applied(loaded: Loaded): void;
}

interface Refusal {
  readonly message: string;
  readonly diagnostics?: readonly unknown[];
  /** What was read; undefined when unknown. */
  readonly inputs?: Inputs | undefined;
  /** The same configuration may be accepted later: what is wrong lies outside of it and of its files. */
  readonly outside: boolean;
  readonly deadly?: boolean;
}

/**
 * Keeps the configuration in force equal to its source. What was read last is compared with what is on disk, so no change
 * is lost, whenever it comes. What was refused for a reason outside of the files is tried again, with growing pauses.
 */
export class ConfigFollower {
  readonly #source: ConfigSource;
  readonly #env: Readonly<Record<string, string | undefined>>;
  readonly #resources: ResourceStore;
  readonly #host: Host;
  readonly #log: Logger;
  readonly #watch: FileWatch;
  readonly #startSettings: Settings;
  #generation = 0;
  #appliedAt: string | null = null;
  #loadedAt = new Date().toISOString();
  #inForce: Loaded | undefined;
  #restartRequired: readonly string[] = [];
  #lastError: ConfigError | null = null;
  /** Of the version that was refused last. */
  #refused: { readonly hash: string | undefined; readonly attempts: number } | undefined;
  #retry: { readonly at: number; readonly timer: NodeJS.Timeout } | undefined;
  #queue: Promise<unknown> = Promise.resolve();
  #closed = false;

  /** `start` are the settings that the process begins with. */
  constructor(
    source: ConfigSource,
    env: Readonly<Record<string, string | undefined>>,
    resources: ResourceStore,
    start: Settings,
    host: Host,
    log: Logger,
  ) {
    this.#source = source;
    this.#env = env;
    this.#resources = resources;
    this.#startSettings = start;
    this.#host = host;
    this.#log = log;
    this.#watch = new FileWatch(() => void this.reload());
  }

  get status(): ConfigStatus {
    const inputs = this.#inForce?.inputs;
    const diskDiffers = inputs !== undefined && this.#watch.differs(inputs.files);
    return {
      generation: this.#generation,
      appliedAt: this.#appliedAt,
      loadedAt: this.#loadedAt,
      hash: inputs?.hash ?? null,
      diskDiffers,
      lastError: this.#lastError,
      nextRetryAt: this.#retry === undefined ? null : new Date(this.#retry.at).toISOString(),
      synchronized: inputs !== undefined && !diskDiffers && this.#lastError === null,
      restartRequired: this.#restartRequired,
      source: this.#source.kind === "text" ? (this.#source.name ?? "command line") : this.#source.path,
    };
  }

  /** Puts what the process begins with in force, and follows its source from then on. Rejects with why it cannot. */
  async begin(start: Loaded): Promise<void> {
    await this.#host.apply(1, start);
    this.#accept(start);
  }

  /** Reads and applies the source, changed or not. Resolves with whether it is in force, as it is then. */
  reload(): Promise<boolean> {
    return this.#enqueue(false);
  }

  close(): void {
    this.#closed = true;
    this.#watch.close();
    this.#cancelRetry();
  }

  #enqueue(retrying: boolean): Promise<boolean> {
    const reloaded = this.#queue.then(() => this.#reloadOnce(retrying));
    this.#queue = reloaded;
    return reloaded;
  }

  async #reloadOnce(retrying: boolean): Promise<boolean> {
    if (this.#closed) return false;
    this.#cancelRetry();
    // The baseline for comparisons when it is unknown what was read.
    const before = this.#watch.now();
    const loadedAt = new Date().toISOString();
    let loaded: PackedLoad | undefined;
    let refusal: Refusal | undefined;
    try {
      loaded = await loadWithResources((known) => loadConfigAside(this.#source, this.#env, known), this.#resources);
      if (loaded.ok) await this.#host.apply(this.#generation + 1, loaded);
      else refusal = this.#explain(loaded);
    } catch (error) {
      const message = messageOf(error);
      refusal = { message, inputs: loaded?.inputs, outside: true, deadly: error instanceof WorkersDied };
    }
    this.#loadedAt = loadedAt;
    if (loaded?.ok === true && refusal === undefined) {
      this.#accept(loaded);
      this.#log.info("configuration reloaded", { generation: this.#generation });
      return true;
    }
    if (refusal !== undefined) this.#refuse(refusal, retrying);
    this.#follow(loaded?.inputs.files ?? before);
    return false;
  }

  #explain(loaded: Extract<PackedLoad, { ok: false }>): Refusal {
    const { diagnostics, inputs, urls } = loaded;
    const inUse = new Set(this.#inForce?.urls);
    // What cannot be read now may be readable later without a change of any file, as what is behind a URL may change.
    const outside = [...inputs.files.values()].includes(UNKNOWN) || urls.some((url) => !inUse.has(url));
    return { message: formatDiagnostics(diagnostics), diagnostics, inputs, outside };
  }

  #accept(loaded: Loaded): void {
    this.#generation++;
    this.#appliedAt = new Date().toISOString();
    this.#inForce = loaded;
    this.#lastError = null;
    this.#refused = undefined;
    this.#host.applied(loaded);
    this.#compareWithStart(loaded);
    this.#resources.keep(loaded.urls, {
      changed: () => this.reload(),
      failed: (url, problem) => this.#log.warn(`cannot fetch ${url} again: ${problem}; what was there stays`),
    });
    this.#follow(loaded.inputs.files);
  }

  #compareWithStart(loaded: Loaded): void {
    const fields = restartRequired(this.#startSettings, loaded.config);
    const known = fields.join() === this.#restartRequired.join();
    this.#restartRequired = fields;
    if (fields.length > 0 && !known)
      this.#log.warn("changed settings take effect only after a restart", {
        fields: fields.join(", "),
      });
  }

  #refuse({ message, diagnostics = [], inputs, outside, deadly = false }: Refusal, retrying: boolean): void {
    // Or the next attempt would be made with the same documents.
    this.#resources.forgetOthers(this.#inForce?.urls ?? []);
    const same = this.#refused !== undefined && this.#refused.hash === inputs?.hash;
    const attempts = same ? (this.#refused?.attempts ?? 0) + 1 : 1;
    this.#refused = { hash: inputs?.hash, attempts };
    const pause = outside && !(deadly && attempts > DEADLY_RETRIES) ? pauseBefore(attempts) : undefined;
    const repeated = retrying && this.#lastError?.message === message;
    this.#lastError = { at: new Date().toISOString(), message, diagnostics };
    if (!repeated)
      this.#log.error(
        `Failed to reload config: ${message}`,
        pause === undefined ? {} : { retryIn: `${pause}ms, then with growing pauses` },
      );
    if (pause === undefined || this.#closed) return;
    const timer = setTimeout(() => void this.#enqueue(true), pause).unref();
    this.#retry = { at: Date.now() + pause, timer };
  }

  /** What was read can be read again: text from the command line and standard input are not followed. */
  #follow(files: Inputs["files"]): void {
    if (this.#source.kind === "file" && !this.#closed) this.#watch.follow(files);
  }

  #cancelRetry(): void {
    clearTimeout(this.#retry?.timer);
    this.#retry = undefined;
  }
}

/** Milliseconds: 1 s, 2 s, 4 s, up to 30 s. */
function pauseBefore(attempt: number): number {
  return Math.min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** Math.min(attempt - 1, 10));
}

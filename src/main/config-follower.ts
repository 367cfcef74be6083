import type { ConfigDifference } from "../admin/plane/config-difference.ts";
import type { ConfigError, ConfigStatus, ConfigWarnings } from "../admin/plane/config-status.ts";
import { messageOf } from "../base/errors.ts";
import type { Logger } from "../base/log.ts";
import type { Locate } from "../base/origin.ts";
import type { ConfigSource } from "../config/load.ts";
import { loadConfigAside, loadWithResources, type PackedLoad, strictLoad } from "../config/load-thread.ts";
import { type Inputs, UNKNOWN } from "../config/parse/inputs.ts";
import { restartRequired, type Settings } from "../config/settings.ts";
import { FileWatch } from "../config/watch.ts";
import { refusedText } from "../impact/impact-text.ts";
import { digestOfPem } from "../tls/tls-check.ts";
import { type Diagnostic, formatDiagnostics } from "../translation/problems/diagnostics.ts";
import { type ResourceStore, shownUrl } from "../translation/resources/store.ts";
import { WorkersDied } from "../worker/supervisor.ts";
import { AppliedText } from "./applied-text.ts";
import { DEADLY_REPEATS, type Follower, type Host, pauseBefore } from "./follower.ts";
import { WrittenPlaces } from "./written-places.ts";

export type Loaded = Extract<PackedLoad, { ok: true }>;

interface Rejection {
  readonly message: string;
  /** The same whenever the cause is the same; default: the message. */
  readonly cause?: string;
  readonly diagnostics?: readonly unknown[];
  /** The files that were read; undefined if unknown. */
  readonly inputs?: Inputs | undefined;
  /** The same files may be accepted later: the cause is outside of them, such as a port in use or a URL that fails. */
  readonly outside: boolean;
  readonly deadly?: boolean;
}

/** Most warnings that the status lists. */
const MAX_WARNINGS = 50;

function warningsOf(diagnostics: readonly Diagnostic[]): ConfigWarnings {
  const warnings = diagnostics.filter(({ severity }) => severity === "warning");
  const first = warnings
    .slice(0, MAX_WARNINGS)
    .map(({ file, line, column, path, message, remedy, lint }): ConfigWarnings["first"][number] => ({
      file,
      line,
      column,
      path,
      message,
      ...(remedy !== undefined && { remedy }),
      ...(lint !== undefined && { lint }),
    }));
  return { count: warnings.length, first };
}

/**
 * Keeps the configuration in effect equal to its source. It compares digests of what was read with what is on disk (level, not
 * edge), so a missed file event loses no change. A configuration that was rejected for a reason outside of its files is tried
 * again, with growing pauses.
 */
export class ConfigFollower implements Follower {
  readonly #source: ConfigSource;
  readonly #env: Readonly<Record<string, string | undefined>>;
  readonly #resources: ResourceStore;
  readonly #host: Host;
  readonly #log: Logger;
  readonly #strict: boolean;
  readonly #watch: FileWatch;
  /** The settings at startup; changes to those that are read only then are reported. */
  readonly #settings: Settings;
  /** The configuration at startup, until it is in effect. */
  #start: Loaded | undefined;
  #generation = 0;
  #appliedAt: string | null = null;
  #loadedAt = new Date().toISOString();
  #inEffect: Loaded | undefined;
  #places: WrittenPlaces | undefined;
  #text: AppliedText | undefined;
  #warnings: ConfigWarnings = { count: 0, first: [] };
  #restartRequired: readonly string[] = [];
  #lastError: ConfigError | null = null;
  /** The version that was rejected last, and why. */
  #rejected: { readonly hash: string | undefined; readonly attempts: number; readonly cause: string } | undefined;
  #repeat: { readonly at: number; readonly timer: NodeJS.Timeout } | undefined;
  #queue: Promise<unknown> = Promise.resolve();
  #closed = false;

  /**
   * `start`: the configuration at startup, with whose settings later ones are compared. `strict`: configurations with warnings are
   * rejected.
   */
  constructor(
    source: ConfigSource,
    env: Readonly<Record<string, string | undefined>>,
    resources: ResourceStore,
    start: Loaded,
    host: Host,
    log: Logger,
    strict = false,
  ) {
    this.#strict = strict;
    this.#source = source;
    this.#env = env;
    this.#resources = resources;
    this.#settings = start.config;
    this.#start = start;
    this.#host = host;
    this.#log = log;
    this.#watch = new FileWatch(() => void this.reload());
  }

  readonly locate: Locate = (path) => this.#places?.locate(path);

  async difference(secret: ReadonlySet<string>): Promise<ConfigDifference> {
    return this.#text?.difference(secret) ?? { unknown: "the configuration does not come from a file" };
  }

  get status(): ConfigStatus {
    const inputs = this.#inEffect?.inputs;
    const diskDiffers = inputs !== undefined && this.#watch.differs(inputs.files);
    return {
      generation: this.#generation,
      appliedAt: this.#appliedAt,
      loadedAt: this.#loadedAt,
      hash: inputs?.hash ?? null,
      diskDiffers,
      lastError: this.#lastError,
      nextRetryAt: this.#repeat === undefined ? null : new Date(this.#repeat.at).toISOString(),
      synchronized: inputs !== undefined && !diskDiffers && this.#lastError === null,
      restartRequired: this.#restartRequired,
      warnings: this.#warnings,
      missingDocuments: this.#resources.missing,
      source: nameOfSource(this.#source),
    };
  }

  /** Applies the first configuration and follows its source from then on. Rejects if it cannot be applied. */
  async begin(): Promise<void> {
    const start = this.#start;
    if (start === undefined) return;
    await this.#host.apply(1, start.configuration);
    this.#start = undefined;
    this.#accept(start);
  }

  /** Reads and applies the source, changed or not. Resolves with whether it is in effect. */
  reload(): Promise<boolean> {
    return this.#enqueue(false);
  }

  documentWanted(url: string): void {
    this.#resources.refetch(url);
  }

  preview(): undefined {
    return undefined;
  }

  close(): void {
    this.#closed = true;
    this.#watch.close();
    this.#cancelRepeat();
  }

  #enqueue(repeating: boolean): Promise<boolean> {
    const reloaded = this.#queue.then(() => this.#reloadOnce(repeating));
    this.#queue = reloaded;
    return reloaded;
  }

  async #reloadOnce(repeating: boolean): Promise<boolean> {
    if (this.#closed) return false;
    this.#cancelRepeat();
    // The baseline for comparisons if the load fails before it reports what it read.
    const before = this.#watch.now();
    const loadedAt = new Date().toISOString();
    let loaded: PackedLoad | undefined;
    let rejection: Rejection | undefined;
    try {
      loaded = await loadWithResources(
        (known) => loadConfigAside(this.#source, this.#env, known, this.#inEffect?.configuration),
        this.#resources,
      );
      if (this.#strict) loaded = strictLoad(loaded);
      rejection = loaded.ok ? (this.#invalid(loaded) ?? (await this.#harmful(loaded))) : this.#explain(loaded);
      if (loaded.ok && rejection === undefined) await this.#host.apply(this.#generation + 1, loaded.configuration);
    } catch (error) {
      const message = messageOf(error);
      rejection = { message, inputs: loaded?.inputs, outside: true, deadly: error instanceof WorkersDied };
    }
    this.#loadedAt = loadedAt;
    if (loaded?.ok === true && rejection === undefined) {
      this.#accept(loaded);
      this.#log.info("configuration reloaded", { generation: this.#generation });
      return true;
    }
    if (rejection !== undefined) this.#reject(rejection, repeating);
    this.#follow(loaded?.inputs.files ?? before);
    return false;
  }

  #explain(loaded: Extract<PackedLoad, { ok: false }>): Rejection {
    const { diagnostics, inputs, urls } = loaded;
    const inUse = new Set(this.#inEffect?.urls);
    // An unreadable file or a URL may become readable without a change of any watched file.
    // The clock changes what is said of a certificate.
    const outside =
      [...inputs.files.values()].includes(UNKNOWN) ||
      urls.some((url) => !inUse.has(url)) ||
      diagnostics.some(({ invalidCertificate }) => invalidCertificate !== undefined);
    return { ...problemsIn(diagnostics), inputs, outside };
  }

  /**
   * A certificate that has expired or is not valid yet does not replace one that may be valid. One that is in effect already does
   * not block other changes. The clock may change, so the new configuration is tried again.
   */
  #invalid({ warnings, inputs }: Loaded): Rejection | undefined {
    const invalid = warnings.filter(({ invalidCertificate }) => invalidCertificate !== undefined);
    if (invalid.length === 0) return undefined;
    const listeners = this.#inEffect?.configuration.frame.binds.flatMap((bind) => bind.listeners) ?? [];
    const certificates = listeners.flatMap(({ tls }) =>
      tls === undefined ? [] : [tls, ...(tls.otherCertificates ?? [])],
    );
    const inEffect = new Set(certificates.map(({ cert }) => digestOfPem(cert)));
    const others = invalid.filter(({ invalidCertificate = "" }) => !inEffect.has(invalidCertificate));
    if (others.length === 0) return undefined;
    const diagnostics = others.map((each) => ({ ...each, severity: "error" as const }));
    return { ...problemsIn(diagnostics), inputs, outside: true };
  }

  /**
   * A configuration that would refuse too many of the sampled requests does not take effect. The samples change with the traffic, so it is
   * tried again.
   */
  async #harmful({ config, configuration, inputs }: Loaded): Promise<Rejection | undefined> {
    const limit = config.reload.impact ?? this.#inEffect?.config.reload.impact;
    if (limit === undefined) return undefined;
    const impact = await this.#host.impactOf(configuration);
    const { classes, requests } = impact;
    const refused = classes.refused.requests / requests;
    if (!(refused > limit.maxRefused)) return undefined;
    const cause = `more than ${percent(limit.maxRefused)} of the sampled requests would be refused`;
    const { locate } = new WrittenPlaces(this.#source, this.#env, inputs.files);
    const message = [
      `it would refuse ${percent(refused)} of the sampled requests, and config.reload.impact.maxRefused allows ${percent(limit.maxRefused)}; to apply it all the same, raise that limit in it`,
      refusedText(impact, locate),
    ].join("\n");
    return { message, cause, inputs, outside: true };
  }

  #accept(loaded: Loaded): void {
    this.#generation++;
    this.#appliedAt = new Date().toISOString();
    this.#inEffect = loaded;
    this.#places = new WrittenPlaces(this.#source, this.#env, loaded.inputs.files);
    if (this.#source.kind === "files") this.#text = new AppliedText(this.#source.paths, loaded.inputs.files);
    this.#warnings = warningsOf(loaded.warnings);
    this.#lastError = null;
    this.#rejected = undefined;
    this.#host.applied(loaded.configuration, loaded.warnings);
    this.#compareWithStart(loaded);
    this.#resources.keep(loaded.urls, {
      changed: () => this.reload(),
      failed: (url, problem, former) => {
        const effect = former ? "the previous document stays in use" : "requests that need it get 503";
        this.#log.warn(`cannot fetch ${shownUrl(url)} again: ${problem}; ${effect}`);
      },
    });
    this.#follow(loaded.inputs.files);
    this.#host.attempted();
  }

  #compareWithStart(loaded: Loaded): void {
    const fields = restartRequired(this.#settings, loaded.config);
    const known = fields.join() === this.#restartRequired.join();
    this.#restartRequired = fields;
    if (fields.length > 0 && !known)
      this.#log.warn("changed settings take effect only after a restart", {
        fields: fields.join(", "),
      });
  }

  #reject(
    { message, cause = message, diagnostics = [], inputs, outside, deadly = false }: Rejection,
    repeating: boolean,
  ): void {
    // The next attempt must fetch the documents again.
    this.#resources.forgetOthers(this.#inEffect?.urls ?? []);
    const same = this.#rejected !== undefined && this.#rejected.hash === inputs?.hash;
    const attempts = same ? (this.#rejected?.attempts ?? 0) + 1 : 1;
    const repeated = repeating && this.#rejected?.cause === cause;
    this.#rejected = { hash: inputs?.hash, attempts, cause };
    const pause = outside && !(deadly && attempts > DEADLY_REPEATS) ? pauseBefore(attempts) : undefined;
    this.#lastError = { at: new Date().toISOString(), message, diagnostics };
    this.#host.attempted();
    if (!repeated)
      this.#log.error(
        `Failed to reload config: ${message}`,
        pause === undefined ? {} : { retryIn: `${pause}ms, then with growing pauses` },
      );
    if (pause === undefined || this.#closed) return;
    const timer = setTimeout(() => void this.#enqueue(true), pause).unref();
    this.#repeat = { at: Date.now() + pause, timer };
  }

  /** Only files are followed: text of the command line and standard input cannot be read again. */
  #follow(files: Inputs["files"]): void {
    if (this.#source.kind === "files" && !this.#closed) this.#watch.follow(files);
  }

  #cancelRepeat(): void {
    clearTimeout(this.#repeat?.timer);
    this.#repeat = undefined;
  }
}

function nameOfSource(source: ConfigSource): string {
  if (source.kind === "files") return source.paths.join(", ");
  if (source.kind === "text") return source.name ?? "command line";
  return source.texts.map(({ name }) => name).join(", ");
}

function percent(share: number): string {
  return `${Number((share * 100).toPrecision(3))}%`;
}

/** For the log and the status, whose texts end without a line break. */
function problemsIn(diagnostics: readonly Diagnostic[]): Pick<Rejection, "message" | "diagnostics"> {
  return { message: formatDiagnostics(diagnostics).trimEnd(), diagnostics };
}

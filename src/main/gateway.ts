import { startAdminServer } from "../admin/admin-server.ts";
import type { ConfigDifference } from "../admin/plane/config-difference.ts";
import type { ConfigStatus } from "../admin/plane/config-status.ts";
import type { AdminPlane } from "../admin/plane/plane.ts";
import { startReadinessServer } from "../admin/readiness-server.ts";
import type { RunningServer } from "../admin/server/http-server.ts";
import { startStatsServer } from "../admin/stats-server.ts";
import { messageOf } from "../base/errors.ts";
import { type InheritedSocket, InheritedSockets } from "../base/inherited-sockets.ts";
import { formatHostPort, type ListenAddress } from "../base/listen-address.ts";
import type { Logger, LogOutput } from "../base/log.ts";
import { parseLogFilter } from "../base/log-filter.ts";
import { openFilesLimit } from "../base/open-files.ts";
import type { Locate } from "../base/origin.ts";
import type { OwnSockets } from "../base/own-sockets.ts";
import { CliError } from "../cli/runner/errors.ts";
import { type ConfigSource, rereadable } from "../config/load.ts";
import { loadConfigAside, loadWithResources, strictLoad } from "../config/load-thread.ts";
import type { Settings } from "../config/settings.ts";
import { formatBindAddresses } from "../ir/bind-addresses.ts";
import { callersOf } from "../ir/callers-of.ts";
import { type PackedIr, unpackIr } from "../ir/packed-ir.ts";
import { Egress, NO_LOOKUP_RULES } from "../net/egress.ts";
import { listeningFd, missingInternals } from "../net/node-internals.ts";
import { Records } from "../recorder/records.ts";
import { RehearsalThread } from "../rehearsal/rehearsal-thread.ts";
import type { Diagnostic } from "../translation/problems/diagnostics.ts";
import { formatDiagnostics } from "../translation/problems/diagnostics.ts";
import { ResourceStore, type Resources } from "../translation/resources/store.ts";
import { MemoryWatch } from "../worker/memory-watch.ts";
import { Supervisor, type SupervisorEvents } from "../worker/supervisor.ts";
import { WorkerThreads } from "../worker/worker-threads.ts";
import { ConfigFollower, type Loaded } from "./config-follower.ts";
import type { Follower, Host } from "./follower.ts";
import type { GatewayLog } from "./gateway-log.ts";
import { Impacts } from "./impacts.ts";
import { InternalApi } from "./internal-api.ts";
import type { LogFile } from "./log-file.ts";
import type { Sink } from "./log-sink.ts";
import { ManagedCertificates } from "./managed-certificates.ts";
import { makePlane } from "./plane.ts";
import { StreamFollower } from "./stream-follower.ts";
import { makeExports, type TelemetryExport } from "./telemetry-export.ts";
import { TrafficHistory } from "./traffic-history.ts";
import { memoryLimit, openFilesWarning, rehearsalSettings, supervisorSettings } from "./worker-settings.ts";

/** Milliseconds for the last exports if the drain has used up its deadline. */
const MIN_EXPORT_MS = 1000;
/** Milliseconds for a slow reader of the log to read the last lines. */
const LOG_FLUSH_MS = 1000;

export interface GatewayOptions {
  /** Default: a new store. */
  readonly resources?: ResourceStore;
  /** Worker threads that were started early. */
  readonly threads?: WorkerThreads | undefined;
  /** Listening sockets that are used instead of new ones. Default: none. */
  readonly inherited?: InheritedSockets;
  /** A configuration with warnings is rejected, at the start and by reloads. Default false. */
  readonly strict?: boolean;
}

/** The configuration cannot be used; the message holds every problem, ready to be printed. */
export class StartError extends CliError {
  constructor(message: string) {
    super("failure", message);
  }
}

/** A running gateway: its workers, its own servers, and the watch on its configuration. */
export class Gateway {
  /** Called after each attempt to bring a configuration into effect; `status` says how it ended. */
  onAttempt: () => void = () => {};
  readonly supervisor: Supervisor;
  readonly rehearsals: RehearsalThread;
  readonly impacts: Impacts;
  readonly records: Records | undefined;
  readonly history: TrafficHistory;
  readonly exports: TelemetryExport;
  readonly certificates: ManagedCertificates;
  readonly sink: Sink;
  readonly settings: Settings;
  readonly #output: LogOutput;
  readonly #file: LogFile | undefined;
  readonly #log: Logger;
  readonly #servers = new Map<string, RunningServer>();
  readonly #plane: AdminPlane;
  readonly #internal = new InternalApi();
  /** Where this process listens. */
  readonly #own: OwnSockets;
  readonly #inherited: InheritedSockets;
  readonly #resources: ResourceStore;
  #memory: MemoryWatch | undefined;
  readonly #follower: Follower;
  #configuration: PackedIr;
  /** The startup tasks that readiness waits for and names (docs/configuration.md#with-a-controller). */
  readonly #pending: Set<string>;
  #started = false;
  /** A configuration is in effect. */
  #serving = false;
  #shutdown: Promise<void> | undefined;
  readonly #ready = Promise.withResolvers<void>();
  readonly #onStopped: () => void;

  private constructor(
    source: ConfigSource,
    env: Readonly<Record<string, string | undefined>>,
    loaded: Loaded,
    resources: ResourceStore,
    log: GatewayLog,
    { threads = new WorkerThreads(0), inherited = new InheritedSockets(), strict = false }: GatewayOptions,
    onStopped: () => void,
  ) {
    this.#inherited = inherited;
    this.#resources = resources;
    const { output, sink, file } = log;
    this.#file = file;
    this.#output = output;
    this.sink = sink;
    this.#log = output.logger("gateway");
    this.#configuration = loaded.configuration;
    this.settings = loaded.config;
    this.#onStopped = onStopped;
    const host: Host = {
      apply: (generation, configuration) => this.#apply(generation, configuration),
      impactOf: (configuration) => this.impacts.of({ configuration }),
      applied: (configuration, warnings) => this.#applied(configuration, warnings),
      attempted: () => this.onAttempt(),
    };
    const { xds } = loaded.config;
    this.#pending = new Set(xds === undefined ? ["configuration", "listeners"] : ["state manager"]);
    const supervised = supervisorSettings(loaded, log, env, this.#internal.socket);
    this.#own = supervised.own;
    let callers: { readonly of: PackedIr; readonly all: ReturnType<typeof callersOf> } | undefined;
    this.#own.callersOf = (port) => {
      // Found once: whoever opens such connections chooses how often it is asked.
      if (callers?.of !== this.#configuration)
        callers = { of: this.#configuration, all: callersOf(unpackIr(this.#configuration)) };
      return callers.all.flatMap((each) => (each.port === port ? [`${each.owner} (${each.host}:${port})`] : []));
    };
    const egress = new Egress(supervised.worker.egress, this.#own);
    resources.egress = egress;
    this.#follower =
      xds === undefined
        ? new ConfigFollower(source, env, resources, loaded, host, this.#log, strict)
        : new StreamFollower(
            xds,
            loaded,
            host,
            // The process's own file names the controller, which is inside the cluster.
            new Egress({ provenance: "operator", lookupRules: NO_LOOKUP_RULES }, supervised.own),
            output.logger("xds"),
          );
    this.certificates = new ManagedCertificates(egress, output.logger("acme"));
    this.exports = makeExports(supervised.worker, egress, env, output.logger("telemetry"));
    const events: SupervisorEvents = {
      onLog: (lines, dropped, apart) => {
        if (dropped > 0) sink.addDropped(dropped);
        if (apart) file?.write(lines);
        else sink.write(lines);
      },
      onExport: (exporter, chunk) => this.exports.add(exporter, chunk),
      onDocumentWanted: (url) => this.#follower.documentWanted(url),
      onWorkerDeath: (name, error) => {
        this.#log.error("a worker died and is being replaced", { worker: name, error });
        if (!inherited.ofServiceManager) return;
        // The copies of the dead worker are gone, and only a new process gets others.
        this.#log.error("its sockets belong to the service manager: the gateway ends, to be started again with them");
        void this.shutdown();
      },
    };
    this.supervisor = new Supervisor({ ...supervised, inherited }, events, threads);
    const { supervisor } = this;
    this.records = supervisor.recorders.length === 0 ? undefined : new Records(supervisor.recorders);
    this.history = new TrafficHistory(supervisor);
    const rehearsed = rehearsalSettings(loaded.config, env);
    // What limits count at the moment is not part of an impact.
    this.impacts = new Impacts(this, rehearsed);
    const { buckets, requestCounts } = supervisor;
    this.rehearsals = new RehearsalThread(
      { ...rehearsed, buckets, requestCounts },
      {
        state: () => ({
          configuration: this.#configuration,
          ports: supervisor.ports,
          notices: supervisor.health.notices,
          resources: resources.resources,
        }),
        endpoints: async (keys) => [...(await supervisor.endpoints(keys)).values()],
      },
    );
    this.#plane = makePlane(this);
  }

  /**
   * Starts everything; resolves when traffic is served, or, with a controller, when it waits for the first state. Rejects with
   * StartError when the configuration or a port is unusable. `onStopped` is called once the gateway has shut down.
   */
  static async start(
    source: ConfigSource,
    env: Readonly<Record<string, string | undefined>>,
    makeLog: (settings: Settings) => GatewayLog,
    onStopped: () => void,
    options: GatewayOptions = {},
  ): Promise<Gateway> {
    const { resources = ResourceStore.ofFile(), strict = false } = options;
    const again = rereadable(source);
    const read = await loadWithResources(
      async (known) => resources.obeying(await loadConfigAside(again, env, known)),
      resources,
    );
    const loaded = strict ? strictLoad(read) : read;
    if (!loaded.ok) throw new StartError(formatDiagnostics(loaded.diagnostics));
    const gateway = new Gateway(again, env, loaded, resources, makeLog(loaded.config), options, onStopped);
    try {
      await gateway.#start();
    } catch (error) {
      await gateway.close();
      throw new StartError(messageOf(error));
    }
    return gateway;
  }

  /** Resolves when readiness probes succeed for the first time. */
  get ready(): Promise<void> {
    return this.#ready.promise;
  }

  /** The configuration in effect. */
  get configuration(): PackedIr {
    return this.#configuration;
  }

  /** Those that the gateway has fetched. */
  get documents(): Resources {
    return this.#resources.resources;
  }

  get status(): ConfigStatus {
    return this.#follower.status;
  }

  readonly locate: Locate = (path) => this.#follower.locate(path);

  difference(secret: ReadonlySet<string>): Promise<ConfigDifference> {
    return this.#follower.difference(secret);
  }

  /** See `Follower`. */
  preview(id: string): Promise<PackedIr> | undefined {
    return this.#follower.preview(id);
  }

  get pending(): string[] {
    return [...this.#pending];
  }

  /** Addresses of the gateway's own servers, by name. */
  get addresses(): Readonly<Record<string, readonly string[]>> {
    return Object.fromEntries(Array.from(this.#servers, ([name, server]) => [name, server.addresses]));
  }

  get logFilter(): string {
    return this.#output.filter.toString();
  }

  /** Throws with the parser's message when the filter is not valid. */
  setLogFilter(filter: string): void {
    this.#output.filter = parseLogFilter(filter);
    void this.supervisor.setLogFilter(filter);
  }

  /** Whether the shutdown has begun. */
  get draining(): boolean {
    return this.#shutdown !== undefined;
  }

  /** Reads the configuration again, changed or not; `status` has the outcome. */
  async reload(): Promise<void> {
    await this.#follower.reload();
  }

  /**
   * Drains and stops (reference 7): keeps serving for the minimum deadline, then closes ports and connections as
   * proxy/ports/drain.ts says, waits for requests in progress up to the maximum, then cuts the rest. Further calls return the same promise.
   */
  shutdown(): Promise<void> {
    this.#shutdown ??= this.#drain(false);
    return this.#shutdown;
  }

  /** Drains and stops after another process has begun to serve with the same sockets: this one lets go of them at once. */
  handOver(): Promise<void> {
    this.#shutdown ??= this.#drain(true);
    return this.#shutdown;
  }

  /** Ends at once: connections break. */
  async close(): Promise<void> {
    this.#memory?.close();
    this.history.close();
    this.#follower.close();
    this.#resources.close();
    await Promise.all([this.certificates.close(), this.supervisor.stop(), this.rehearsals.close()]);
    await Promise.all([this.#internal, ...this.#servers.values()].map((server) => server.close()));
    this.#file?.close();
  }

  /** All listening sockets, for a process that takes over. */
  withSockets<T>(use: (sockets: readonly InheritedSocket[]) => Promise<T>): Promise<T> {
    const own = [...this.#servers.values()].flatMap(({ servers, addresses }) =>
      servers.flatMap((server, i) => {
        const fd = listeningFd(server);
        const address = addresses[i];
        return fd === undefined || address === undefined ? [] : [{ fd, address }];
      }),
    );
    return this.supervisor.withSockets((sockets) => use([...own, ...sockets]));
  }

  /** Where this process listens. */
  get ownSockets(): OwnSockets {
    return this.#own;
  }

  async #start(): Promise<void> {
    const plane = this.#plane;
    const { adminAddr, statsAddr, readinessAddr } = this.settings;
    const log = this.#output.logger("admin");
    for (const { name, effect } of missingInternals)
      this.#log.warn("this version of Node.js lacks something that the gateway uses", { name, effect });
    const inherited = this.#inherited;
    const servers = [
      { name: "readiness", address: readinessAddr, start: startReadinessServer },
      { name: "admin", address: adminAddr, start: startAdminServer },
      { name: "stats", address: statsAddr, start: startStatsServer },
    ] as const;
    // The gateway that this one takes over from serves with the same sockets until this one is ready.
    const isOfOther = (address: ListenAddress): boolean =>
      inherited.takesOver && socketsOf(address).some((each) => inherited.has(each));
    const startServers = async (ofOther: boolean): Promise<void> => {
      for (const { name, address, start } of servers)
        if (isOfOther(address) === ofOther)
          this.#servers.set(name, await start(plane, address, log, this.#own, inherited));
    };
    await startServers(false);
    this.supervisor.start();
    this.history.start();
    await this.#follower.begin();
    await startServers(true);
    const ports = this.configuration.frame.binds.length;
    const fewFiles = openFilesWarning(openFilesLimit(), this.settings.workerThreads, ports);
    if (fewFiles !== undefined) this.#log.warn(fewFiles);
    const memory = memoryLimit(this.settings);
    if (memory !== undefined) this.#memory = new MemoryWatch(this.supervisor.pressure, memory, this.#log);
    for (const [name, addresses] of Object.entries(this.addresses))
      for (const address of addresses) this.#log.info("listening", { server: name, address });
    this.#started = true;
    this.#checkReady();
  }

  #checkReady(): void {
    if (this.#pending.size === 0 || !this.#started || !this.#serving) return;
    this.#pending.clear();
    this.#inherited.closeRest();
    this.#log.info("ready");
    this.#ready.resolve();
  }

  async #apply(generation: number, configuration: PackedIr): Promise<void> {
    await this.#internal.prepare(configuration, this.#plane, this.#output.logger("admin"), this.#own);
    this.exports.use(configuration);
    try {
      await this.supervisor.apply(generation, configuration);
    } catch (error) {
      this.exports.use(this.#configuration);
      throw error;
    }
  }

  #applied(configuration: PackedIr, warnings: readonly Diagnostic[]): void {
    this.#configuration = configuration;
    // A start does not wait for a look at each certificate, nor does a server ask for an answer before there is one.
    void this.#ready.promise.then(() => this.certificates.follow(configuration.frame));
    for (const { source: _line, ...warning } of warnings) this.#log.warn(formatDiagnostics([warning]).trimEnd());
    for (const bind of configuration.frame.binds) {
      if (bind.mode === "internal") continue;
      const port = this.supervisor.ports[bind.key] ?? bind.port;
      const where =
        bind.addresses === undefined ? { host: bind.host, port } : { address: formatBindAddresses(bind, port) };
      this.#log.info("serving", { bind: bind.key, ...where });
    }
    this.#serving = true;
    this.#checkReady();
  }

  /** `handedOver`: another process serves already. */
  async #drain(handedOver: boolean): Promise<void> {
    const { terminationMaxDeadline } = this.settings;
    const terminationMinDeadline = handedOver ? 0 : this.settings.terminationMinDeadline;
    this.#log.info("draining", { min: `${terminationMinDeadline}ms`, max: `${terminationMaxDeadline}ms` });
    if (handedOver) for (const server of this.#servers.values()) void server.close(true);
    // Endpoints may change while requests still arrive, so the configuration is followed until ports close.
    await new Promise((resolve) => setTimeout(resolve, terminationMinDeadline));
    this.#follower.close();
    const startedAt = performance.now();
    const cut = await this.supervisor.drain(terminationMaxDeadline, handedOver);
    if (cut > 0)
      this.#log.warn("drain duration expired with pending connections, forcefully shutting down", { connections: cut });
    // The spans of the last requests are exported in the rest of the deadline.
    await this.exports.close(Math.max(MIN_EXPORT_MS, terminationMaxDeadline - (performance.now() - startedAt)));
    await this.close();
    await this.sink.flush(LOG_FLUSH_MS);
    this.#onStopped();
  }
}

/** The sockets of one of the gateway's own servers, as they are inherited. */
function socketsOf(address: ListenAddress): readonly string[] {
  switch (address.type) {
    case "off":
      return [];
    case "unix":
      return [`unix:${address.path}`];
    case "localhost":
      return ["127.0.0.1", "::1"].map((host) => formatHostPort(host, address.port));
    case "socket":
      return [formatHostPort(address.host, address.port)];
  }
}

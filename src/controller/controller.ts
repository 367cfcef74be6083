/**
 * The controller: follows the cluster, computes what each Gateway's proxies run, sends it to them, and — on one of its replicas —
 * deploys proxies and writes statuses. Composed here; run by `tracegate controller`.
 */
import type { PreviewReport } from "../admin/client/controller-client.ts";
import { AdminUnavailable } from "../admin/plane/plane.ts";
import type { RunningServer } from "../admin/server/http-server.ts";
import { messageOf } from "../base/errors.ts";
import { formatHostPort, type ListenAddress, listenAt } from "../base/listen-address.ts";
import { type Logger, type LogOutput, LogThrottle } from "../base/log.ts";
import { OwnSockets } from "../base/own-sockets.ts";
import { HttpKubeClient } from "../kube/connect.ts";
import type { ClusterAccess } from "../kube/credentials.ts";
import { EventRecorder } from "../kube/events.ts";
import type { Kind, KubeObject } from "../kube/objects.ts";
import { Reflector } from "../kube/reflector.ts";
import { Egress } from "../net/egress.ts";
import { ResourceStore } from "../translation/resources/store.ts";
import { classOfFleet } from "../xds/resources.ts";
import { tokenReviewer } from "../xds/server/authenticator.ts";
import { XdsCertificates } from "../xds/server/certificates.ts";
import { XdsServer } from "../xds/server/server.ts";
import { ownProfiles, startControllerAdmin } from "./admin.ts";
import { type ControllerSettings, lookupRules } from "./base/settings.ts";
import { scopesOf, WATCHED, watchedKinds } from "./base/watched.ts";
import { Certificates } from "./certificates.ts";
import { Documents } from "./documents.ts";
import { Graph } from "./graph/graph.ts";
import { controllerIdentity, hostRules, type Rejection, streamAuthority } from "./graph/inputs.ts";
import { startHealthServer } from "./health.ts";
import { LeaderElection } from "./leader.ts";
import { ReconcileMetrics } from "./metrics.ts";
import { type ControllerCounters, startMetricsServer } from "./metrics-server.ts";
import { preview } from "./previews.ts";
import { ProxyReports } from "./proxy-reports.ts";
import { ReferencedObjects } from "./referenced-objects.ts";
import { gatewaySnapshot, objectSnapshot } from "./snapshots.ts";
import { desiredStatuses } from "./status/statuses.ts";
import { Syncer } from "./syncer.ts";
import { accountOf, mergingParameters } from "./translate/model/fleets.ts";
import { ClusterWriters } from "./writers.ts";

/** The Lease, and the source of Events. */
const NAME = "tracegate";
/** Milliseconds between two lines of the log that say that the API server cannot be reached. */
const OUTAGE_LINE_MS = 10_000;
/** Milliseconds for work in progress at a shutdown: the last writes, and the release of the lease. */
const CLOSE_MS = 5000;

interface ControllerOptions {
  readonly settings: ControllerSettings;
  readonly access: ClusterAccess;
  readonly version: string;
  /** What `GET /version` shows. */
  readonly build: () => object;
  readonly output: LogOutput;
  /** Where the process listens. Default: nowhere yet. */
  readonly own?: OwnSockets;
}

export class Controller {
  readonly #options: ControllerOptions;
  readonly #log: Logger;
  /** Where this process listens. */
  readonly #own: OwnSockets;
  readonly #graph = new Graph();
  readonly #metrics = new ReconcileMetrics();
  readonly #outages = new LogThrottle(OUTAGE_LINE_MS);
  /** Reads, and writes that are many. */
  readonly #client: HttpKubeClient;
  /** Lease and certificate: not to wait for statuses. */
  readonly #urgent: HttpKubeClient;
  /** Tokens and Events. How many there are is up to others, who must not cost a replica its lease. */
  readonly #others: HttpKubeClient;
  readonly #syncer: Syncer;
  readonly #documents: Documents;
  readonly #listenerCertificates: Certificates;
  readonly #referenced: ReferencedObjects;
  /** What is followed. */
  readonly #kinds: readonly Kind[];
  readonly #reflectors: readonly Reflector<Kind>[];
  readonly #stream: XdsServer;
  /** undefined: the stream is in plaintext. */
  readonly #certificates: XdsCertificates | undefined;
  readonly #reports: ProxyReports;
  readonly #events: EventRecorder;
  readonly #election: LeaderElection;
  readonly #servers: RunningServer[] = [];
  readonly #closing = new AbortController();
  readonly #running: Promise<void>[] = [];
  #writers: ClusterWriters | undefined;
  #synced = false;
  #port = 0;

  private constructor(options: ControllerOptions) {
    const { settings, access, output } = options;
    this.#options = options;
    this.#own = options.own ?? new OwnSockets();
    this.#log = output.logger("default");
    this.#client = new HttpKubeClient(access);
    this.#urgent = new HttpKubeClient(access);
    this.#others = new HttpKubeClient(access);
    this.#events = new EventRecorder(this.#others, NAME, settings.podName, this.#log);
    this.#syncer = new Syncer({
      graph: this.#graph,
      publish: (fleet, state, gateways) => this.#stream.publish(fleet, state, gateways),
      complete: () => this.#referenced.update(),
      write: () => {
        this.#documents.update();
        // Statuses look for more objects than states do.
        if (this.#writers !== undefined) this.#graph.query(desiredStatuses, "");
        if (this.#referenced.update()) this.#writers?.update();
      },
      metrics: this.#metrics,
      log: output.logger("tracegate/translator"),
    });
    this.#documents = new Documents({
      graph: this.#graph,
      changed: () => this.#syncer.changed(),
      log: output.logger("tracegate/translator"),
      // Authors of policies choose the URLs.
      store: new ResourceStore(
        new Egress({ provenance: "stream", lookupRules: lookupRules(settings.hosts) }, this.#own),
      ),
    });
    this.#listenerCertificates = new Certificates({
      graph: this.#graph,
      syncer: this.#syncer,
      log: output.logger("tracegate/translator"),
    });
    this.#referenced = new ReferencedObjects({
      client: this.#client,
      graph: this.#graph,
      sinks: { Secret: this.#listenerCertificates, ConfigMap: this.#syncer },
      changed: () => this.#syncer.changed(),
      log: output.logger("gateway-controller"),
    });
    this.#reports = new ProxyReports({
      graph: this.#graph,
      changed: () => this.#syncer.changed(),
      rejected: (gateway, rejection) => this.#rejected(gateway, rejection),
    });
    const log = output.logger("tracegate/syncer");
    const { namespace, xds } = settings;
    if (xds.mode === "tls")
      this.#certificates = new XdsCertificates({
        client: this.#urgent,
        namespace,
        service: xds.service,
        log,
        onCa: (ca) => this.#syncer.set(streamAuthority(ca)),
      });
    this.#stream = new XdsServer({
      credentials: this.#certificates?.credentials,
      authenticate: xds.auth ? tokenReviewer(this.#others, xds.audience) : undefined,
      accountOf: (fleet) => accountOf(this.#graph, fleet),
      log,
      onProxy: (proxy, connected, gateways) => this.#reports.update(proxy, connected, gateways),
      onDocumentWanted: (url) => this.#documents.want(url),
    });
    this.#kinds = watchedKinds(settings);
    this.#reflectors = this.#kinds.flatMap((kind) =>
      scopesOf(kind, settings.watch.namespaces).map((namespace) => this.#reflector(kind, namespace)),
    );
    this.#election = new LeaderElection({
      client: this.#urgent,
      namespace: settings.namespace,
      name: NAME,
      identity: settings.podName,
      log: this.#log,
      onChange: (leading) => this.#lead(leading),
    });
    this.#graph.set(controllerIdentity(settings.controllerName));
    this.#graph.set(hostRules(settings.hosts));
  }

  /** Resolves when the servers listen; the cluster may be out of reach. Rejects if a port is taken. */
  static async start(options: ControllerOptions): Promise<Controller> {
    const controller = new Controller(options);
    try {
      await controller.#listen();
    } catch (error) {
      await controller.close();
      throw error;
    }
    controller.#follow();
    return controller;
  }

  /** Whether everything has been read once. */
  get synced(): boolean {
    return this.#synced;
  }

  get leading(): boolean {
    return this.#election.leading;
  }

  /** Ports by server: `health`, `metrics`, `admin`, `xds`. */
  get ports(): Readonly<Record<string, number>> {
    const [health = 0, metrics = 0, admin = 0] = this.#servers.map(({ addresses }) =>
      Number(addresses[0]?.split(":").at(-1)),
    );
    return { health, metrics, admin, xds: this.#port };
  }

  /** Gives up the lease, and ends streams so that proxies connect to another replica. */
  async close(): Promise<void> {
    if (this.#closing.signal.aborted) return;
    this.#closing.abort();
    this.#syncer.stop();
    this.#documents.close();
    this.#listenerCertificates.close();
    this.#certificates?.close();
    const { promise: late, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, CLOSE_MS);
    await Promise.race([
      Promise.all([this.#stream.close(), this.#writers?.close(), this.#referenced.close(), ...this.#running]),
      late,
    ]);
    clearTimeout(timer);
    await Promise.all(this.#servers.map((server) => server.close()));
    this.#client.close();
    this.#urgent.close();
    this.#others.close();
  }

  async #listen(): Promise<void> {
    const { ports } = this.#options.settings;
    const any = (port: number): ListenAddress => ({ type: "socket", host: "::", port });
    const plane = {
      ...ownProfiles,
      version: this.#options.version,
      build: this.#options.build,
      output: this.#options.output,
      objects: () => objectSnapshot(this.#graph),
      gateways: () => gatewaySnapshot(this.#graph, this.#syncer.published),
      proxies: () => this.#stream.proxies,
      preview: (id: string, gateway: string, objects: readonly unknown[]) => this.#preview(id, gateway, objects),
    };
    const problem = (): string | undefined =>
      this.#closing.signal.aborted ? "shutting down" : this.#synced ? undefined : "not synced";
    this.#servers.push(await startHealthServer(problem, any(ports.health), this.#log, this.#own));
    this.#servers.push(await startMetricsServer(() => this.#render(), any(ports.metrics), this.#log, this.#own));
    this.#servers.push(
      await startControllerAdmin(plane, { type: "localhost", port: ports.admin }, this.#log, this.#own),
    );
    const listening = listenAt("::", (host) => this.#stream.listen(formatHostPort(host, ports.xds)));
    this.#port = await listening.catch((error: unknown) => {
      throw new Error(`the configuration stream cannot listen on port ${ports.xds}: ${messageOf(error)}`);
    });
    this.#own.addPort("tcp", "server", this.#port);
    this.#log.info("listening", this.ports);
  }

  #preview(id: string, gateway: string, objects: readonly unknown[]): PreviewReport {
    if (!this.#synced) throw new AdminUnavailable("the controller has not read the cluster yet; try again");
    const { fleet, state, report } = preview(this.#graph, gateway, objects, this.#options.settings.watch.namespaces);
    this.#stream.keepPreview(id, fleet, state);
    return report;
  }

  #follow(): void {
    const { signal } = this.#closing;
    void this.#certificates?.start();
    for (const reflector of this.#reflectors) this.#running.push(reflector.run(signal));
    void Promise.all(this.#reflectors.map(({ synced }) => synced)).then(() => {
      if (signal.aborted) return;
      this.#synced = true;
      this.#log.info("synced", {
        objects: this.#kinds.reduce((sum, kind) => sum + this.#graph.count(kind), 0),
      });
      this.#syncer.start();
      // Who leads must be able to write at once.
      if (this.#options.settings.leaderElection) this.#running.push(this.#election.run(signal));
      else this.#lead(true);
    });
  }

  #reflector<K extends Kind>(kind: K, namespace: string | undefined): Reflector<Kind> {
    const { gatewaySelector } = this.#options.settings.watch;
    const ofGateways = kind === "Gateway" && gatewaySelector !== "" ? { labelSelector: gatewaySelector } : undefined;
    const {
      metadataOnly = false,
      referenced = false,
      optional = false,
      selectors = ofGateways,
      trim,
    } = WATCHED[kind] ?? {};
    return new Reflector<K>({
      client: this.#client,
      kind,
      namespace,
      metadataOnly,
      optional,
      sink: referenced ? this.#referenced : this.#syncer,
      log: this.#options.output.logger("gateway-controller"),
      outages: this.#outages,
      ...(selectors !== undefined && { selectors }),
      ...(trim !== undefined && { trim }),
    }) as unknown as Reflector<Kind>;
  }

  #lead(leading: boolean): void {
    const former = this.#writers;
    this.#writers = undefined;
    if (former !== undefined) this.#running.push(former.close());
    if (!leading || this.#closing.signal.aborted) return;
    const { settings, version, output } = this.#options;
    const input = { changed: () => this.#syncer.changed(), metrics: this.#metrics };
    this.#writers = new ClusterWriters({
      client: this.#client,
      graph: this.#graph,
      settings,
      version,
      output,
      events: this.#events,
      ...input,
    });
    this.#syncer.changed();
  }

  /** `fleet`: its key. */
  #rejected(fleet: string, { pod, message, heldBack }: Rejection): void {
    this.#options.output
      .logger("tracegate/syncer")
      .warn("a proxy rejected its configuration", { gateway: fleet, pod, message });
    for (const { gateway, reason } of heldBack)
      this.#recordRejection(
        this.#graph.get("Gateway", gateway),
        `Shared proxy ${pod} rejected the configuration of this Gateway and keeps its former one: ${reason}`,
      );
    if (heldBack.length > 0) return;
    // Of shared proxies, those who write the parameters may know what any Gateway says.
    const gatewayClass = classOfFleet(fleet);
    const parameters = gatewayClass === undefined ? undefined : this.#graph.query(mergingParameters, gatewayClass);
    const object =
      parameters === undefined
        ? this.#graph.get("Gateway", fleet)
        : this.#graph.get("TracegateParameters", parameters.key);
    this.#recordRejection(object, `Proxy ${pod} rejected its configuration and keeps the former one: ${message}`);
  }

  #recordRejection(object: KubeObject | undefined, message: string): void {
    if (object !== undefined)
      void this.#events.record(object, { type: "Warning", reason: "TracegateNackError", message });
  }

  #render(): ControllerCounters {
    return {
      version: this.#options.version,
      leading: this.#election.leading,
      objects: this.#kinds.map((kind) => {
        const states = this.#reflectors.filter((each) => each.kind === kind).map(({ state }) => state);
        const worst = states.find((state) => state !== "following") ?? "following";
        return { kind, state: worst, count: this.#graph.count(kind) };
      }),
      extra: [...this.#metrics.render(), ...this.#stream.metrics(), ...(this.#writers?.render() ?? [])],
    };
  }
}

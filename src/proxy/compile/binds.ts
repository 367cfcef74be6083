/** Compiles binds and their listeners, whose routes have been compiled before. */
import { PendingChallenges } from "../../acme/challenges.ts";
import type { ChallengeType, ManagedCertificate } from "../../acme/settings.ts";
import { Networks } from "../../base/ip-address.ts";
import type { Logger } from "../../base/log.ts";
import type { Bind, Listener } from "../../ir/ir.ts";
import { placeName } from "../../ir/origins.ts";
import { Rules } from "../../policies/authorization/rules.ts";
import { compilePolicies } from "../../policies/compile.ts";
import { NetworkAuthorizer, prepareNetworkAuthz } from "../../policies/ext-authz/network.ts";
import { AccessLists } from "../../policies/ip-access/access-lists.ts";
import { NO_POLICY_SET } from "../../policies/merge.ts";
import { AccessLogEdits } from "../../telemetry/access-log-edits.ts";
import type { TicketSecrets } from "../../tls/ticket-keys.ts";
import type { TlsServer } from "../../tls/tls-settings.ts";
import { TlsTerminator } from "../../tls/tls-terminator.ts";
import { bodyCaptureOptions } from "../body/recorded-bodies.ts";
import { Forwarding } from "../fields/forwarding.ts";
import { ListenerTable, TcpRouteTable } from "../match/hosts.ts";
import type { Services } from "../services/services.ts";
import { LogExport } from "../telemetry/log-export.ts";
import { RequestTracing } from "../telemetry/request-tracing.ts";
import type { CompiledBind, CompiledListener, CompiledTcpRoute } from "./compiled.ts";
import type { Outbound } from "./outbound.ts";
import type { Rejections } from "./rejections.ts";
import type { Routes } from "./routes.ts";
import { listenerLabels, SeriesCache, UNROUTED } from "./series-cache.ts";

export interface CachedTerminator {
  /** Its settings and protocol, to compare. */
  readonly settings: string;
  readonly terminator: TlsTerminator;
}

export type BindServices = Pick<Services, "metrics" | "customLabels" | "exports" | "random" | "tickets">;

export class Binds {
  /** By the key of the listener. Unchanged ones keep their contexts and the sessions that clients resume. */
  readonly terminators = new Map<string, CachedTerminator>();
  readonly #before: ReadonlyMap<string, CachedTerminator> | undefined;
  readonly #generation: number;
  readonly #routes: Routes;
  readonly #outbound: Outbound;
  readonly #services: BindServices;
  readonly #merged: CompiledBind["merged"] = new WeakMap();
  readonly #challenges: PendingChallenges | undefined;

  /** `certificates`: those that the gateway orders for any listener. `before`: the terminators of the configuration in effect. */
  constructor(
    certificates: readonly ManagedCertificate[],
    generation: number,
    routes: Routes,
    outbound: Outbound,
    services: BindServices,
    before?: ReadonlyMap<string, CachedTerminator>,
  ) {
    this.#challenges = challengesOf(certificates, "http-01");
    this.#generation = generation;
    this.#routes = routes;
    this.#outbound = outbound;
    this.#services = services;
    this.#before = before;
  }

  /** Compiles a listener, or a route of TCP, TLS or UDP, in each step. The bind lacks those that are noted in `rejections`. */
  *compile(bind: Bind, groups: CompiledBind["groups"], rejections: Rejections): Generator<void, CompiledBind> {
    const listeners: { readonly hostname: string; readonly value: CompiledListener }[] = [];
    for (const listener of bind.listeners) {
      // Plain TCP and UDP carry no host name: the listener serves the whole port.
      const hostname = listener.protocol === "TCP" || listener.protocol === "UDP" ? "" : listener.hostname;
      const value = yield* rejections.noting(listener.key, this.#listener(bind, listener));
      if (value !== undefined) listeners.push({ hostname, value });
      yield;
    }
    const { frontend } = bind;
    const { environment } = this.#outbound;
    const { cel, log } = environment;
    const { metrics, customLabels, exports, random } = this.#services;
    const { accessLog: edits, tracing: spans, networkExtAuthz: service } = frontend;
    const proxies = frontend.proxyProtocol?.from;
    const accessLog = edits && new AccessLogEdits(edits, cel);
    const logExport = edits?.otlp && new LogExport(edits.otlp, exports, cel);
    const tracing = spans && new RequestTracing(spans, exports, random, cel);
    const readers = [accessLog, logExport, tracing, customLabels];
    return {
      key: bind.key,
      generation: this.#generation,
      at: { host: bind.host, addresses: bind.addresses, socketMode: bind.socketMode },
      port: bind.port,
      protocol: bind.protocol,
      mode: bind.mode,
      accessLog,
      logExport,
      tracing,
      writesValues: readers.some((reader) => (reader?.reads.size ?? 0) > 0),
      recordedBodies: bodyCaptureOptions(readers, frontend.maxBufferSize),
      access: frontend.ipAccess && new AccessLists(frontend.ipAccess),
      network: frontend.networkAuthorization && new Rules(frontend.networkAuthorization, "network", cel),
      networkAuthorizer:
        service &&
        new NetworkAuthorizer(
          prepareNetworkAuthz(service, cel),
          this.#outbound.callout(service.target, service.policies),
          log,
        ),
      frontend,
      proxies: proxies && new Networks(proxies),
      forwarding: new Forwarding(frontend),
      listeners: new ListenerTable(listeners),
      challenges: bind.protocol === "http" || bind.protocol === "tls" ? this.#challenges : undefined,
      policies: environment,
      groups,
      merged: this.#merged,
      provenance: this.#routes.provenance,
      series: new SeriesCache(metrics, { ...UNROUTED, bind: bind.key }),
    };
  }

  *#listener(bind: Bind, listener: Listener): Generator<void, CompiledListener> {
    const labels = listenerLabels(bind.key, listener);
    const tcpRoutes: CompiledTcpRoute[] = [];
    for (const route of listener.tcpRoutes) {
      tcpRoutes.push(this.#routes.tcpRoute(route, labels));
      yield;
    }
    const { protocol } = listener;
    const { ipAccess } = protocol === "HTTP" || protocol === "HTTPS" ? NO_POLICY_SET : listener.policies;
    return {
      key: listener.key,
      name: listener.name,
      gateway: labels.gateway,
      protocol,
      terminator: this.#terminatorOf(listener),
      challenges: challengesOf(listener.acme === undefined ? [] : [listener.acme], "tls-alpn-01"),
      access: ipAccess && new AccessLists(ipAccess),
      tcpRoutes: new TcpRouteTable(tcpRoutes),
      policies: compilePolicies(listener.policies, "gateway", this.#outbound.whole.environment, listener.key, (kind) =>
        placeName(kind, listener, listener.key),
      ),
      router: this.#routes.router(listener.key),
      series: new SeriesCache(this.#services.metrics, labels),
    };
  }

  #terminatorOf(listener: Listener): TlsTerminator | undefined {
    const { key, protocol, tls } = listener;
    if (tls === undefined) return undefined;
    const settings = `${protocol} ${JSON.stringify(tls)}`;
    const before = this.#before?.get(key);
    const terminator =
      before?.settings === settings
        ? before.terminator
        : makeTerminator(key, protocol, tls, this.#services.tickets, this.#outbound.environment.log);
    this.terminators.set(key, { settings, terminator });
    return terminator;
  }
}

/** Where the validations of this type are pending; undefined: no certificate is validated this way. */
function challengesOf(certificates: readonly ManagedCertificate[], type: ChallengeType): PendingChallenges | undefined {
  const storages = certificates.flatMap(({ settings }) => (settings.challenge === type ? [settings.storage] : []));
  return storages.length === 0 ? undefined : new PendingChallenges([...new Set(storages)]);
}

/** What HTTPS listeners offer unless the configuration says otherwise, in order of preference. */
const ALPN = ["h2", "http/1.1"];

/** Certificates that it makes are logged. */
function makeTerminator(
  key: string,
  protocol: Listener["protocol"],
  tls: TlsServer,
  tickets: TicketSecrets,
  log: Logger | undefined,
): TlsTerminator {
  const protocols = protocol === "HTTPS" ? (tls.alpn ?? ALPN) : [];
  return new TlsTerminator(key, tls, protocols, tickets, (name, { serialNumber, notAfter }) => {
    const expires = new Date(notAfter).toISOString();
    log?.debug("certificate made", { listener: key, "tls.sni": name, serial: serialNumber, expires });
  });
}

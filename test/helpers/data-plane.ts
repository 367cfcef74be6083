import { Networks } from "../../src/base/ip-address.ts";
import { LogOutput } from "../../src/base/log.ts";
import { parseLogFilter } from "../../src/base/log-filter.ts";
import { OwnSockets } from "../../src/base/own-sockets.ts";
import { Sweeper } from "../../src/base/sweeper.ts";
import type { Frontend, Ir, Route, ValueMatch } from "../../src/ir/ir.ts";
import { type PackedIr, packIr } from "../../src/ir/packed-ir.ts";
import { Egress, type EgressOptions, NO_LOOKUP_RULES } from "../../src/net/egress.ts";
import { SocketBudget } from "../../src/net/socket-budget.ts";
import type { PolicySet } from "../../src/policies/policy-set.ts";
import { RequestCounts } from "../../src/policies/request-counts/request-counts.ts";
import { SharedSessions } from "../../src/policies/shared-sessions/shared-sessions.ts";
import { TokenBuckets } from "../../src/policies/token-buckets/buckets.ts";
import { BufferBudget } from "../../src/proxy/body/buffer-budget.ts";
import { DataPlane } from "../../src/proxy/data-plane.ts";
import { MemoryPressure } from "../../src/proxy/overload/memory-pressure.ts";
import { Overload, type OverloadLimits, type OverloadSystem } from "../../src/proxy/overload/overload.ts";
import { DRAIN_STEPS } from "../../src/proxy/ports/drain.ts";
import { ALONE } from "../../src/proxy/ports/sharing.ts";
import {
  type ExpressionClock,
  type ExpressionLimits,
  ExpressionShares,
} from "../../src/proxy/services/expression-shares.ts";
import type { Services } from "../../src/proxy/services/services.ts";
import { TraceLog } from "../../src/proxy/services/trace-log.ts";
import { Watchers } from "../../src/proxy/services/watchers.ts";
import { RecorderMemory } from "../../src/recorder/memory.ts";
import { Recorder } from "../../src/recorder/recorder.ts";
import { AccessLog } from "../../src/telemetry/access-log.ts";
import { LineList } from "../../src/telemetry/line-list.ts";
import { Metrics } from "../../src/telemetry/metrics.ts";
import { TicketSecrets } from "../../src/tls/ticket-keys.ts";
import type { TraceEvent, TraceMessage } from "../../src/trace/events.ts";
import { TraceGate } from "../../src/trace/gate.ts";
import { sensitiveHeaders } from "../../src/trace/redaction.ts";
import type { TraceOptions } from "../../src/trace/tracer.ts";
import { fetchThrough } from "../../src/upstream/callouts/fetch.ts";
import { dynamicEndpoints } from "../../src/upstream/destinations/dynamic.ts";
import type { Service, Workload } from "../../src/upstream/discovery/discovery.ts";
import { Workloads } from "../../src/upstream/discovery/discovery.ts";
import type { Locality } from "../../src/upstream/discovery/locality.ts";
import { Endpoints } from "../../src/upstream/endpoints/endpoints.ts";
import { HealthChecks } from "../../src/upstream/health/health-checks.ts";
import type { PoolSettings } from "../../src/upstream/pools/pool.ts";
import { Pools } from "../../src/upstream/pools/pools.ts";
import { Resolver, SYSTEM, type System } from "../../src/upstream/resolve/resolver.ts";
import type { Target } from "../../src/upstream/settings/target.ts";
import { FRONTEND } from "./frontend.ts";

/** The limits of a bind as the configuration fills them in. */
const FILLED_IN: Frontend = {
  ...FRONTEND,
  maxBufferSize: 2 * 1024 * 1024,
  maxConnections: 50_000,
  keepalives: { enabled: true, time: 180_000 },
  // Off, unlike the default, so that tests compare whole heads with what they have sent.
  forwarded: { mode: "off", trustedProxies: [] },
  requestId: { header: "x-request-id", mode: "off" },
};

export interface TestRoute {
  /** Path prefix. Default `/`. */
  readonly path?: string;
  /** Further conditions. Default: none. */
  readonly headers?: readonly ValueMatch[];
  readonly query?: readonly ValueMatch[];
  readonly target: Target;
  readonly policies?: PolicySet;
  readonly backendPolicies?: PolicySet;
}

export interface PlaneOptions {
  readonly frontend?: Partial<Frontend>;
  readonly pool?: Partial<PoolSettings>;
  /** Milliseconds between checks of the deadlines; a second in production. Default 10. */
  readonly sweepInterval?: number;
  readonly oidcCookieKey?: Uint8Array;
  /** Memory of token buckets. Default: as in production. */
  readonly buckets?: SharedArrayBuffer;
  readonly services?: readonly Service[];
  readonly workloads?: readonly Workload[];
  readonly locality?: Locality;
  /** Who chooses the targets. Default: the operator. */
  readonly egress?: EgressOptions;
  /** Limit of open sockets. Default: none. */
  readonly openSockets?: number;
  /** Default: never overloaded. */
  readonly overload?: { readonly limits: OverloadLimits; readonly thread: OverloadSystem };
  /** What differs from the defaults. */
  readonly expressions?: Partial<ExpressionLimits & ExpressionClock>;
  /** What differs from the system in looking up names. */
  readonly names?: Partial<System>;
}

const CALM: OverloadSystem = {
  now: () => performance.now(),
  heap: () => ({ used: 0, limit: 1, external: 0 }),
  collect: () => {},
  random: Math.random,
};

const LISTENER = "default/default/bind/0/listener0";

/** The data plane of one worker inside the test's own process, listening on a free port. */
export class TestPlane {
  readonly plane: DataPlane;
  readonly endpoints: Endpoints;
  /** Milliseconds by which the clock of the budget for bodies is ahead. */
  later = 0;
  readonly buffers = new BufferBudget(() => performance.now() + this.later);
  readonly metrics = new Metrics();
  readonly records = RecorderMemory.create(64 * 1024, 64 * 1024);
  /** Where the data plane listens. */
  readonly own = new OwnSockets();
  readonly overload: Overload;
  readonly pressure = new MemoryPressure(1);
  /** Spans and log records for collectors, encoded. */
  readonly exported: Uint8Array[] = [];
  readonly lines: string[] = [];
  port = 0;
  readonly #sweeper: Sweeper;
  readonly #options: PlaneOptions;
  readonly #gate = new TraceGate();
  readonly #watchers: Watchers;
  #onTrace: (json: string | undefined) => void = () => {};
  #generation = 0;

  /** Serves nothing until `configure` or `apply`. */
  constructor(options: PlaneOptions = {}) {
    this.#options = options;
    this.#sweeper = new Sweeper(options.sweepInterval ?? 10);
    const output = new LogOutput(parseLogFilter("info"), "json", (line) => this.lines.push(line));
    const settings = { connectTimeout: 10_000, idleTimeout: 90_000, maxIdle: undefined, keepAliveDelay: 0 };
    const { own } = this;
    const egress = new Egress(options.egress ?? { provenance: "operator", lookupRules: NO_LOOKUP_RULES }, own);
    const resolver = new Resolver("All", egress, undefined, { ...SYSTEM, ...options.names });
    const pools = new Pools({ ...settings, ...options.pool }, resolver, { onConnected: () => {} }, this.#sweeper);
    const observer = { onConnected: () => {} };
    const probes = new Pools({ ...settings, ...options.pool }, resolver, observer, this.#sweeper);
    const health = new HealthChecks(probes, Math.random, output.logger("upstream::health"), (notice) =>
      this.endpoints.setHealth(notice),
    );
    health.start();
    this.endpoints = new Endpoints(pools, undefined, health);
    this.#watchers = new Watchers(this.#gate, (_id, event) => this.#onTrace(event?.json));
    const { limits = { maxLag: 0, heapShare: 0 }, thread = CALM } = options.overload ?? {};
    this.overload = new Overload(limits, this.pressure, 0, this.metrics, output.logger("proxy"), thread);
    const services: Services = {
      metrics: this.metrics,
      tickets: new TicketSecrets(),
      customLabels: undefined,
      watchers: this.#watchers,
      traceLog: new TraceLog(output),
      log: output.logger("proxy"),
      accessLog: new AccessLog(output, new LineList(this.lines), "full"),
      recorder: new Recorder(this.records, 0),
      exports: { add: (_exporter, entry) => this.exported.push(entry) },
      sensitive: sensitiveHeaders([]),
      policies: {
        hidden: sensitiveHeaders([]),
        log: output.logger("proxy"),
        buckets: new TokenBuckets(options.buckets, 0, this.metrics),
        requestCounts: new RequestCounts(undefined, 0, this.metrics),
        fetch: fetchThrough(resolver),
        oidcCookieKey: options.oidcCookieKey,
        oidcCounters: this.metrics,
        oidcSessions: new SharedSessions(),
        sessionKey: new Uint8Array(32),
      },
      env: {},
      overload: this.overload,
      expressions: new ExpressionShares({ perRequest: 1000, routeShare: 0.1, ...options.expressions }, this.metrics, {
        now: CALM.now,
        loopTime: () => performance.eventLoopUtilization(),
        ...options.expressions,
      }),
      workloads: new Workloads(),
      locality: options.locality ?? {},
      sockets: new SocketBudget(options.openSockets),
      upstreamCall: this.metrics.histogram("upstream_call_duration_seconds", "Primary", "Http"),
      buffers: this.buffers,
      random: Math.random,
      dynamic: dynamicEndpoints(this.endpoints, new Networks([])),
      resolver,
      own,
      egress,
      internal: () => this.endpoints.acquire({ path: "/nowhere/admin.sock" }, 1, "internal"),
    };
    this.plane = new DataPlane(services, this.endpoints);
    this.#sweeper.add(this.plane);
  }

  /** One bind with one listener; a number stands for a route to that port of 127.0.0.1. */
  static async start(routes: number | readonly TestRoute[], options: PlaneOptions = {}): Promise<TestPlane> {
    const plane = new TestPlane(options);
    await plane.configure(routes);
    plane.port = (plane.plane.tasks() as { port: number }[])[0]?.port ?? 0;
    return plane;
  }

  /** Puts another configuration into effect; undefined removes the bind. */
  async configure(routes: number | readonly TestRoute[] | undefined): Promise<void> {
    const list =
      typeof routes === "number"
        ? [{ target: { type: "static", host: "127.0.0.1", port: routes } as const }]
        : (routes ?? []);
    await this.apply(packIr(this.#ir(routes === undefined ? undefined : list.map(toRoute))));
  }

  /** Puts any configuration into effect, as a worker does. */
  async apply(configuration: PackedIr): Promise<void> {
    await this.plane.prepare(++this.#generation, configuration, {}, ALONE);
    this.plane.commit();
  }

  /** Waits for the next line of the access log that contains `text`, for at most 10 s. */
  async logged(text: string): Promise<Record<string, unknown>> {
    const deadline = Date.now() + 10_000;
    for (;;) {
      const line = this.lines.find((each) => each.includes(text));
      if (line !== undefined) return JSON.parse(line) as Record<string, unknown>;
      if (Date.now() > deadline) throw new Error(`no log line with ${text}: ${this.lines.join("")}`);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }

  /** The trace of the request that `send` makes, once it is complete. */
  async trace(send: () => Promise<unknown>, options: Partial<TraceOptions> = {}): Promise<TraceMessage[]> {
    const messages: TraceMessage[] = [];
    const complete = new Promise<void>((resolve) => {
      this.#onTrace = (json) => {
        if (json === undefined) resolve();
        else messages.push((JSON.parse(json) as TraceEvent).message);
      };
    });
    this.#watchers.add(0, 0, { functions: "" }, { reveal: false, maxBodyBytes: 0, ...options });
    this.#gate.arm(0);
    await send();
    await complete;
    this.#gate.free(0);
    return messages;
  }

  /** Shuts all ports down; resolves when no connection is left. */
  async drain(deadlineMs: number): Promise<void> {
    for (const step of DRAIN_STEPS) await this.plane.drain(step, deadlineMs);
  }

  /** Ends every connection, then waits until all are gone. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.plane.destroy();
    await this.drain(0);
    await this.configure(undefined);
    this.#sweeper.close();
  }

  #ir(routes: readonly Route[] | undefined): Ir {
    const bind = {
      key: "bind/0",
      host: "127.0.0.1",
      port: 0,
      protocol: "http",
      tunnelProtocol: "direct",
      mode: "standard",
      frontend: { ...FILLED_IN, ...this.#options.frontend },
      listeners: [
        {
          key: LISTENER,
          name: "listener0",
          gatewayName: "default",
          gatewayNamespace: "default",
          hostname: "",
          protocol: "HTTP",
          policies: {},
          routes: routes ?? [],
          tcpRoutes: [],
        },
      ],
    } as const;
    const { services = [], workloads = [] } = this.#options;
    return {
      binds: routes === undefined ? [] : [bind],
      routeGroups: [],
      backends: [],
      services,
      workloads,
      targeted: [],
    };
  }
}

function toRoute(
  { path = "/", headers = [], query = [], target, policies = {}, backendPolicies = {} }: TestRoute,
  index: number,
): Route {
  const key = `${LISTENER}/default/route${index}`;
  return {
    key,
    name: `route${index}`,
    namespace: "default",
    hostnames: [],
    matches: [{ path: { type: "pathPrefix", value: path }, headers, query }],
    policies,
    backends: [{ key: `${key}/backend0`, weight: 1, target, policies: backendPolicies }],
  };
}

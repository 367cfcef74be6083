/**
 * Explains a request by rehearsing it: the data plane itself reads, matches and answers it, on connections that exist in memory only.
 * Nothing reaches a network, and buckets, counters and logs are the rehearsal's own.
 */
import { performance } from "node:perf_hooks";
import { Networks } from "../base/ip-address.ts";
import { formatHostPort } from "../base/listen-address.ts";
import { LogOutput } from "../base/log.ts";
import { parseLogFilter } from "../base/log-filter.ts";
import { OwnSockets } from "../base/own-sockets.ts";
import { Sweeper } from "../base/sweeper.ts";
import type { HttpRequest } from "../http/message/message.ts";
import type { Downstream } from "../http/stream.ts";
import { bindAddresses, hasPort, reach } from "../ir/bind-addresses.ts";
import { type PackedIr, TextPacker } from "../ir/packed-ir.ts";
import type { Addresses } from "../net/addresses.ts";
import { Egress, NO_LOOKUP_RULES } from "../net/egress.ts";
import { SocketBudget } from "../net/socket-budget.ts";
import { createCounts, RequestCounts } from "../policies/request-counts/request-counts.ts";
import { createBuckets, TokenBuckets } from "../policies/token-buckets/buckets.ts";
import { BufferBudget } from "../proxy/body/buffer-budget.ts";
import { compileIr, type Generation, inOneGo } from "../proxy/compile/compile-ir.ts";
import type { CompiledBind } from "../proxy/compile/compiled.ts";
import type { Ports } from "../proxy/data-plane.ts";
import type { Exchange } from "../proxy/exchange/exchange.ts";
import { MemoryPressure } from "../proxy/overload/memory-pressure.ts";
import { Overload } from "../proxy/overload/overload.ts";
import { BindServer } from "../proxy/ports/bind-server.ts";
import { ExpressionShares } from "../proxy/services/expression-shares.ts";
import type { Services } from "../proxy/services/services.ts";
import { TraceLog } from "../proxy/services/trace-log.ts";
import { Watchers } from "../proxy/services/watchers.ts";
import { sensitiveNames } from "../proxy/variables/exchange-variables.ts";
import { SLOT } from "../recorder/layout.ts";
import { RecorderMemory } from "../recorder/memory.ts";
import { Recorder } from "../recorder/recorder.ts";
import { Records as FlightRecords, type RequestRecord } from "../recorder/records.ts";
import { AccessLog, type Rejection } from "../telemetry/access-log.ts";
import type { AccessRecord } from "../telemetry/access-record.ts";
import { LineList } from "../telemetry/line-list.ts";
import { Metrics } from "../telemetry/metrics.ts";
import { TicketSecrets } from "../tls/ticket-keys.ts";
import type { TraceEvent } from "../trace/events.ts";
import { TraceGate } from "../trace/gate.ts";
import { sensitiveHeaders } from "../trace/redaction.ts";
import { dynamicEndpoints } from "../upstream/destinations/dynamic.ts";
import { Workloads } from "../upstream/discovery/discovery.ts";
import type { EvictionNotice, HealthNotice } from "../upstream/endpoints/endpoint.ts";
import { Endpoints } from "../upstream/endpoints/endpoints.ts";
import type { NamesNotice } from "../upstream/endpoints/named-endpoints.ts";
import { Pools } from "../upstream/pools/pools.ts";
import type { Followed } from "../upstream/resolve/followed-name.ts";
import { Resolver, SYSTEM } from "../upstream/resolve/resolver.ts";
import { AssumedBackend, inMemory } from "./assumed-backend.ts";
import { type Assumptions, checkUse } from "./assumptions.ts";
import { Choices, type Given, MAX_RUNS, pushOthers } from "./choices.ts";
import { RehearsedClient } from "./client.ts";
import { rehearseDatagram } from "./datagram.ts";
import { Decider, type Decisions, NO_BIND } from "./decider.ts";
import { BadFacts, type RequestFacts } from "./facts.ts";
import { mergeAlike, type Outcome } from "./outcome.ts";
import type { SampledHead } from "./sampled-head.ts";
import { type Equality, UnknownFacts } from "./unknown-facts.ts";

/** Settings of the gateway that change what a request gets. */
export interface RehearsalSettings {
  readonly sensitiveHeaders: readonly string[];
  /** In microseconds; see `config.expressions`. */
  readonly perRequest: number;
  /** Keys of `oidc` and of `sessionPersistence`; see `ThreadEnvironment`. */
  readonly oidcCookieKey?: Uint8Array | undefined;
  readonly sessionKey: Uint8Array;
  /** Shared memory of the gateway's `TokenBuckets`, whose tokens are counted and not taken; by default all buckets are full. */
  readonly buckets?: SharedArrayBuffer;
  /** Shared memory of the gateway's `RequestCounts`, where the request is not counted; by default no other is in progress. */
  readonly requestCounts?: SharedArrayBuffer;
  /** As in `Services`; by default unknown. */
  readonly env?: Services["env"];
  readonly locality?: Services["locality"];
}

/** What can happen to a request. */
interface Outcomes {
  readonly outcomes: readonly Outcome[];
  /** At least as many more ways were not tried. */
  readonly omitted: number;
}

/** Runs for a request that is partly known, of which many outcomes contradict its record. */
const MAX_PARTLY_KNOWN_RUNS = 64;
const LONGEST_RUN_MS = 30_000;
/** Buckets from which nothing is taken are full, and counts that count nothing are 0. */
const UNUSED = {
  common: 1,
  sizes: [
    { shares: 1, sets: 1 },
    { shares: 1, sets: 1 },
  ],
} as const;
const CALM = {
  now: () => performance.now(),
  heap: () => ({ used: 0, limit: 1, external: 0 }),
  collect() {},
  random: () => 0,
};

/** Keeps what an access log would write. */
class Records extends AccessLog {
  last: Partial<AccessRecord> | undefined;

  constructor(output: LogOutput) {
    super(output, new LineList([]), "full");
  }

  /** Explanations have the origin as data. */
  override asLogged(record: AccessRecord): AccessRecord {
    return record;
  }

  override write(record: AccessRecord): void {
    this.last ??= record;
  }

  override rejected(rejection: Rejection): void {
    this.last ??= rejection;
  }
}

const NOTHING = { exchange: undefined, received: { headers: [], body: Buffer.alloc(0) } } as const;
const HTTP = { protocol: "http", standardPort: 80 } as const;
/** The binds that a client reaches with a URL. */
const SCHEMES: Readonly<
  Record<string, { readonly protocol: CompiledBind["protocol"]; readonly standardPort: number }>
> = {
  "https:": { protocol: "tls", standardPort: 443 },
  "tls:": { protocol: "tls", standardPort: 443 },
  "tcp:": { protocol: "tcp", standardPort: 0 },
  "udp:": { protocol: "udp", standardPort: 0 },
};

const WRITTEN: Readonly<Record<CompiledBind["protocol"], string>> = {
  http: "http:",
  tls: "https:",
  tcp: "tcp:",
  udp: "udp:",
};

/** Keeps the exchange of a rehearsal. */
class RehearsedServer extends BindServer {
  exchange: Exchange | undefined;

  override open(downstream: Downstream, request: HttpRequest): Exchange {
    const exchange = super.open(downstream, request);
    this.exchange ??= exchange;
    return exchange;
  }
}

/** What the threads of a gateway know about endpoints. */
export interface EndpointNotices {
  readonly evictions: readonly EvictionNotice[];
  readonly healths: readonly HealthNotice[];
  /** Addresses of names. */
  readonly names: readonly NamesNotice[];
}

export class Rehearsal {
  /** By default all endpoints are healthy. */
  notices: EndpointNotices = { evictions: [], healths: [], names: [] };
  readonly #configuration: PackedIr;
  readonly #generation: Generation;
  /** The same configuration without workloads, so that services have no endpoints; compiled when it is asked about. */
  #deserted: Generation | undefined;
  readonly #services: Services;
  readonly #choices = new Choices();
  readonly #recorderMemory = RecorderMemory.create(2 * SLOT, SLOT);
  readonly #recorder = new Recorder(this.#recorderMemory, 0);
  readonly #recorded = new FlightRecords([this.#recorderMemory]);
  /** The number of the last one. */
  #lastRecord = 0;
  readonly #unknowns = new UnknownFacts(this.#choices);
  readonly #backend = new AssumedBackend({
    answerOf: (endpoint) => this.#choices.response(endpoint),
    onSilent: () => this.#onSilent(),
  });
  readonly #gate = new TraceGate();
  readonly #watchers: Watchers;
  readonly #sweeper = new Sweeper();
  readonly #records: Records;
  readonly #endpoints: Endpoints;
  readonly #decider: Decider;
  #onEvent: (json: string | undefined) => void = () => {};
  #onSilent = (): void => {};

  /** Throws if the configuration does not compile. */
  constructor(configuration: PackedIr, settings: RehearsalSettings) {
    const output = new LogOutput(parseLogFilter("info"), "json", () => {});
    this.#records = new Records(output);
    const own = new OwnSockets();
    const egress = new Egress({ provenance: "operator", lookupRules: NO_LOOKUP_RULES }, own);
    // Names are not looked up either: their addresses are those that the gateway has found.
    const system = { ...SYSTEM, lookup: nowhere };
    const resolver = new Resolver("V4Only", egress, undefined, system);
    const pool = {
      connectTimeout: 10_000,
      idleTimeout: 0,
      maxIdle: 0,
      keepAliveDelay: 0,
      connect: this.#backend.connect,
    };
    const follow = (): Followed => ({ use() {}, close() {} });
    const pools = new Pools(pool, resolver, { onConnected() {} }, this.#sweeper);
    const endpoints = new Endpoints(pools, undefined, undefined, undefined, { follow });
    this.#endpoints = endpoints;
    const metrics = new Metrics();
    this.#watchers = new Watchers(this.#gate, (_id, event) => this.#onEvent(event?.json));
    this.#services = {
      metrics,
      tickets: new TicketSecrets(),
      customLabels: undefined,
      watchers: this.#watchers,
      traceLog: new TraceLog(output),
      log: output.logger("proxy"),
      accessLog: this.#records,
      recorder: this.#recorder,
      exports: { add() {} },
      sensitive: sensitiveHeaders(settings.sensitiveHeaders),
      policies: {
        hidden: sensitiveHeaders(settings.sensitiveHeaders),
        log: output.logger("proxy"),
        buckets: new TokenBuckets(settings.buckets ?? createBuckets(UNUSED), 0, undefined, undefined, false),
        requestCounts: new RequestCounts(settings.requestCounts ?? createCounts(1, UNUSED), 0, undefined, false),
        fetch: () => Promise.reject(new Error("a rehearsal makes no network request")),
        oidcCookieKey: settings.oidcCookieKey,
        sessionKey: settings.sessionKey,
        answers: this.#choices.answers,
        assumedFields: this.#unknowns.assumedFields,
        assumedAddress: this.#unknowns.assumedAddress,
        rehearsed: this.#choices.rehearsed,
      },
      env: settings.env ?? {},
      overload: new Overload(
        { maxLag: 0, heapShare: 0 },
        new MemoryPressure(1),
        0,
        metrics,
        output.logger("proxy"),
        CALM,
      ),
      expressions: new ExpressionShares({ perRequest: settings.perRequest, routeShare: 0 }, metrics, {
        now: CALM.now,
        loopTime: () => performance.eventLoopUtilization(),
      }),
      sockets: new SocketBudget(),
      workloads: new Workloads(),
      locality: settings.locality ?? {},
      upstreamCall: metrics.histogram("upstream_call_duration_seconds", "Primary", "Http"),
      buffers: new BufferBudget(),
      random: () => 0,
      chooseBackend: this.#choices.backend,
      assumedCertificate: this.#choices.clientCertificate,
      unknowns: this.#unknowns,
      unknownValues: this.#unknowns,
      dynamic: dynamicEndpoints(endpoints, new Networks([])),
      resolver,
      own,
      egress,
      internal: () => undefined,
    };
    // What would happen to samples is compared as it is; no record is needed of it.
    this.#decider = new Decider({ ...this.#services, recorder: undefined }, this.#choices, this.#unknowns);
    this.#configuration = configuration;
    this.#generation = this.#compile(configuration);
    this.#services.workloads.become(this.#generation.addresses.byAddress);
  }

  get binds(): readonly CompiledBind[] {
    return [...this.#generation.binds.values()];
  }

  /**
   * The bind that a client would reach with the URL: by its port and, if several binds have that, by its host; without a port, the only
   * bind for its scheme. `ports`: where binds listen, if not where the configuration says. Throws BadFacts.
   */
  bindFor(url: URL, ports: Ports = {}): CompiledBind {
    const { protocol, standardPort } = SCHEMES[url.protocol] ?? HTTP;
    const all = this.binds.map((bind) => ({ ...bind, port: ports[bind.key] ?? bind.port }));
    const fitting = all.filter((bind) => bind.protocol === protocol);
    const port = Number(url.port || standardPort);
    const named = fitting.filter((bind) => bind.port === port && (hasPort(bind.at) || bind.mode === "internal"));
    const [only, ...others] = fitting;
    if (named.length > 0) return atAddress(url, named);
    if (url.port === "" && only !== undefined && others.length === 0) return only;
    const other = all.find((bind) => bind.port === port);
    const scheme = other === undefined ? url.protocol : WRITTEN[other.protocol];
    const known = (other === undefined ? fitting : [other]).map((bind) => `${scheme}//${url.hostname}:${bind.port}`);
    throw new BadFacts(
      `the configuration has no bind for ${url.protocol.slice(0, -1)} on port ${port}`,
      known.length === 0
        ? `none of its binds serves ${url.protocol.slice(0, -1)}`
        : `write ${known.slice(0, 5).join(" or ")}`,
      { request: "url" },
    );
  }

  /**
   * What happens to a request: one outcome, or one for each way in which services may respond and backends be chosen that neither
   * `assumed` nor `known` determines. Not more than MAX_RUNS are tried, of a request that is partly known MAX_PARTLY_KNOWN_RUNS. Throws
   * BadFacts for an assumption on which no outcome depends; what is known may be of no importance.
   */
  async outcomes(
    facts: RequestFacts,
    bind: CompiledBind,
    assumed: Assumptions,
    known: Assumptions = {},
  ): Promise<Outcomes> {
    this.#unknowns.restart();
    const outcomes: Outcome[] = [];
    const open: Given[] = [{ ...known, ...assumed }];
    const used = assumed.endpoints === "none" ? this.#withoutWorkloads(bind) : bind;
    const most = facts.partly === undefined ? MAX_RUNS : MAX_PARTLY_KNOWN_RUNS;
    for (let next = open.shift(); next !== undefined && outcomes.length < most; next = open.shift()) {
      const outcome = await this.#run(facts, used, next);
      outcomes.push(outcome);
      pushOthers(open, next, this.#choices.asked);
    }
    checkUse(assumed, outcomes);
    checkEndpoints(assumed, outcomes);
    return { outcomes: mergeAlike(outcomes, assumed), omitted: open.length };
  }

  /**
   * What is decided about a sampled request: one decision, or one for each way in which services may respond, backends be chosen and what
   * the sample does not have turn out, up to MAX_RUNS. A promise only if there are several, or a policy waits.
   */
  decisions(head: SampledHead, equality: Equality): Decisions | Promise<Decisions> {
    const bind = this.#generation.binds.get(head.sample.bind);
    if (bind === undefined) return NO_BIND;
    return this.#decider.decisions(head, bind, equality);
  }

  #compile(configuration: PackedIr): Generation {
    return inOneGo(compileIr(1, configuration, this.#services, this.#endpoints));
  }

  #withoutWorkloads({ key, port }: CompiledBind): CompiledBind {
    const { addresses } = this.#configuration;
    const workloads = new TextPacker().pack([]);
    this.#deserted ??= this.#compile({ ...this.#configuration, addresses: { ...addresses, workloads } });
    return { ...(this.#deserted.binds.get(key) as CompiledBind), port };
  }

  /** What has been recorded since the last call. */
  #newRecord(): RequestRecord | undefined {
    const [record] = this.#recorded.find({ since: 0, limit: 1 }).records;
    if (record === undefined || record.number === this.#lastRecord) return undefined;
    this.#lastRecord = record.number;
    return record;
  }

  /** What threads know, or what is assumed in its place. */
  #noticesOf({ endpoints }: Assumptions): EndpointNotices {
    const { names } = this.notices;
    if (endpoints === undefined || endpoints === "none") return this.notices;
    // The assumption concerns the addresses too.
    this.#endpoints.restart([], [], names);
    const assumed = new Map(
      this.#endpoints.stats().flatMap(({ key, target }) => {
        const health = typeof endpoints === "string" ? endpoints : endpoints[target];
        return health === undefined ? [] : [[key, health]];
      }),
    );
    const isOpen = ({ key }: { readonly key: string }): boolean => !assumed.has(key);
    const unhealthy = [...assumed].flatMap(([key, health]) =>
      health === "healthy" ? [] : [{ key, ms: Number.POSITIVE_INFINITY, timesEjected: 1, restoreHealth: undefined }],
    );
    return {
      evictions: [...this.notices.evictions.filter(isOpen), ...unhealthy],
      healths: this.notices.healths.filter(isOpen),
      names,
    };
  }

  async #run(facts: RequestFacts, bind: CompiledBind, given: Given): Promise<Outcome> {
    const { evictions, healths, names } = this.#noticesOf(given);
    this.#endpoints.restart(evictions, healths, names);
    this.#choices.begin(given, facts.partly !== undefined);
    const complete = this.#unknowns.begin(facts, sensitiveNames({ services: this.#services, bind }));
    this.#backend.sent.length = 0;
    this.#records.last = undefined;
    // Neither filters nor changed fields keep the record away.
    const logged = { ...bind, accessLog: undefined };
    const ended =
      bind.protocol === "udp"
        ? { ...(await this.#sendDatagram(facts, logged)), ...NOTHING }
        : await this.#connect(complete, logged);
    if (callsEndpoint(ended)) this.#choices.assumed("endpoints");
    const asked = [...this.#choices.asked];
    const taken = Object.fromEntries(asked.map(([choice, { value }]) => [choice, value]));
    return {
      ...ended,
      recorded: facts.partly && this.#newRecord(),
      given: taken,
      needs: [...this.#choices.needs.values()],
      share: asked.reduce((all, [, { value, share }]) => all * share(value), 1),
      bind,
      serverName: facts.serverName,
      splits: new Map(asked.filter(([, { route }]) => route !== undefined)),
      sent: [...this.#backend.sent],
    };
  }

  #sendDatagram(facts: RequestFacts, bind: CompiledBind): ReturnType<typeof rehearseDatagram> {
    return rehearseDatagram(facts.body, addressesOf(facts, bind), bind, this.#services, () => this.#records.last);
  }

  /** Runs a connection of the client until it, or its request, has ended. */
  async #connect(
    facts: RequestFacts,
    bind: CompiledBind,
  ): Promise<Pick<Outcome, "events" | "exchange" | "record" | "received">> {
    const events: TraceEvent[] = [];
    this.#watchers.add(0, 0, { functions: "" }, { reveal: false, maxBodyBytes: 0 });
    this.#gate.arm(0);
    const [stream, far] = inMemory();
    const { promise: finished, resolve: finish } = Promise.withResolvers<void>();
    this.#onEvent = (json) => {
      if (json === undefined) finish();
      else events.push(JSON.parse(json) as TraceEvent);
    };
    const timer = setTimeout(() => stream.destroy(), LONGEST_RUN_MS);
    const server = new RehearsedServer(bind, { findTarget: () => undefined }, this.#services, () => {});
    let isEndless = false;
    // After the events of the request itself.
    this.#onSilent = () =>
      setImmediate(() => {
        isEndless = server.exchange?.deadlines.skip() === false;
        if (isEndless) stream.destroy();
      });
    try {
      server.rehearse(stream, addressesOf(facts, bind));
      const client = new RehearsedClient(far, facts);
      await Promise.race([finished, client.closed]);
      client.leave();
      await client.closed;
      // The line of a connection is written as it closes.
      await new Promise(setImmediate);
      if (isEndless) throw endless(server.exchange?.selected.route?.label);
      return { events, exchange: server.exchange, record: this.#records.last, received: client.response };
    } finally {
      clearTimeout(timer);
      server.destroy();
      this.#watchers.remove(0);
      this.#gate.free(0);
    }
  }

  close(): void {
    this.#sweeper.close();
  }
}

function endless(route = ""): BadFacts {
  return new BadFacts(
    `the route ${route} waits for the response as long as its client does, because it has no timeout`,
    "assume another response, or give the route a timeout",
    { assume: "response" },
  );
}

/** Whether what is assumed about endpoints concerns the request: it reached a backend that has them, or could have. */
function callsEndpoint({ exchange, record }: Pick<Outcome, "exchange" | "record">): boolean {
  return (
    record?.endpoint !== undefined ||
    record?.code === "TG_NO_HEALTHY_BACKENDS" ||
    exchange?.selected.reachedBackend === true
  );
}

/** Throws BadFacts if something is assumed about an endpoint that no request can be sent to. */
function checkEndpoints({ endpoints }: Assumptions, outcomes: readonly Outcome[]): void {
  if (endpoints === undefined || typeof endpoints === "string") return;
  const known = new Set(
    outcomes.flatMap(({ record, exchange }) => [
      ...(record?.endpoint === undefined ? [] : [record.endpoint]),
      ...(exchange?.selected.backend?.balancer?.endpoints ?? []).map(({ pool }) => pool.name),
    ]),
  );
  const unknown = Object.keys(endpoints).find((name) => !known.has(name));
  if (unknown !== undefined)
    throw new BadFacts(
      `no backend of the request has an endpoint ${unknown}`,
      `write ${[...known].slice(0, 5).join(" or ")}`,
    );
}

/** Of binds on one port, the one that a client of this URL reaches. Throws BadFacts if only the address could tell. */
function atAddress(url: URL, binds: readonly CompiledBind[]): CompiledBind {
  const [only, ...others] = binds;
  if (only !== undefined && others.length === 0) return only;
  const host = url.hostname === "localhost" ? "127.0.0.1" : url.hostname.replace(/^\[|\]$/g, "");
  const ranked = binds.map((bind) => ({ bind, rank: reach(bind.at, host) })).sort((a, b) => b.rank - a.rank);
  const [best] = ranked;
  if (best !== undefined && best.rank > 0) return best.bind;
  const urls = binds.flatMap(({ at, port }) =>
    bindAddresses(at, port).flatMap((address) =>
      "host" in address ? `${url.protocol}//${formatHostPort(address.host, port)}` : [],
    ),
  );
  throw new BadFacts(
    `the configuration has ${binds.length} binds on port ${only?.port}, and the address decides which one is meant`,
    `write ${urls.slice(0, 5).join(" or ")}, with -H 'host: ${url.hostname}'`,
    { request: "url" },
  );
}

function addressesOf({ source }: RequestFacts, { port, at }: CompiledBind): Addresses {
  const [where] = bindAddresses(at, port);
  const localAddress =
    at.addresses === undefined || where === undefined
      ? "127.0.0.1"
      : "host" in where
        ? where.host
        : `unix:${where.path}`;
  const remote = { remoteAddress: source.address, remotePort: source.port };
  return { ...remote, rawAddress: source.address, rawPort: source.port, localAddress, localPort: port };
}

const nowhere: typeof SYSTEM.lookup = (_name, _options, callback) => {
  queueMicrotask(() => callback(null, [{ address: "192.0.2.1", family: 4 }]));
};

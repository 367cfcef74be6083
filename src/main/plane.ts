import { setTimeout as delay } from "node:timers/promises";
import { memoryReport, type NamedThreadMemory } from "../admin/memory.ts";
import type { Overview, RoutesAnswer, RouteView } from "../admin/plane/answers.ts";
import type { BackendsAnswer, BackendView, ProbeAnswer } from "../admin/plane/backends.ts";
import type { CertificatesAnswer } from "../admin/plane/certificates.ts";
import type { ConfigDifference } from "../admin/plane/config-difference.ts";
import type { ConfigPartsAnswer } from "../admin/plane/config-parts.ts";
import type { ConfigStatus } from "../admin/plane/config-status.ts";
import { AdminBadRequest, AdminGone, type AdminPlane, AdminUnavailable } from "../admin/plane/plane.ts";
import { mergeCpuProfiles } from "../admin/pprof/cpu.ts";
import { mergeHeapProfiles } from "../admin/pprof/heap.ts";
import { packageVersion } from "../base/build-info.ts";
import { messageOf } from "../base/errors.ts";
import { parseLogFilter } from "../base/log-filter.ts";
import { type Locate, withPlace } from "../base/origin.ts";
import { redactAll } from "../base/redaction.ts";
import { type Activation, CelError, type Condition } from "../cel/index.ts";
import type { Settings } from "../config/settings.ts";
import type { Ir } from "../ir/ir.ts";
import { type PackedIr, unpackIr } from "../ir/packed-ir.ts";
import { NoRecord } from "../recorder/reach.ts";
import type { RecordAnswer, RecordQuery, Records, RequestRecord } from "../recorder/records.ts";
import { sampleFileText } from "../recorder/sample-file.ts";
import { type Explanation, inFile } from "../rehearsal/explanation.ts";
import { readQuestion } from "../rehearsal/question.ts";
import { RehearsalBusy, type RehearsalThread } from "../rehearsal/rehearsal-thread.ts";
import { processMetrics } from "../telemetry/process-metrics.ts";
import { type ExtraMetric, renderMetrics } from "../telemetry/prometheus.ts";
import { readThreadMemory } from "../telemetry/thread-memory.ts";
import { compileFilter, compileWhere } from "../trace/filter.ts";
import { sensitiveHeaders } from "../trace/redaction.ts";
import type { Resources } from "../translation/resources/store.ts";
import { withLocalityOfNode } from "../upstream/discovery/locality.ts";
import { type CpuProfile, heapProfile, startCpuProfile } from "../worker/profiles.ts";
import type { Supervisor } from "../worker/supervisor.ts";
import { StreamGone, TooManyTraces } from "../worker/trace-hub.ts";
import { BackendViews } from "./backends.ts";
import { certificateViews, orderMetrics, pendingCertificates } from "./certificate-views.ts";
import { dumpIr, dumpSettings } from "./config-dump.ts";
import { configParts } from "./config-parts.ts";
import type { LiveEndpoints } from "./endpoints-dump.ts";
import { fingerprintOf } from "./fingerprint.ts";
import { certificateMetrics, documentMetrics, endpointMetrics } from "./gateway-metrics.ts";
import { GrownHeap } from "./grown-heap.ts";
import type { Impacts } from "./impacts.ts";
import type { ManagedCertificates } from "./managed-certificates.ts";
import { overviewOf } from "./overview.ts";
import { Probes } from "./probes.ts";
import { RouteLists } from "./route-list.ts";
import type { TrafficHistory } from "./traffic-history.ts";
import { versionInfo } from "./version.ts";

/** The part of a gateway that the plane uses. */
interface PlaneSource {
  readonly supervisor: Supervisor;
  readonly rehearsals: RehearsalThread;
  readonly impacts: Impacts;
  readonly documents: Resources;
  readonly settings: Settings;
  /** Undefined: the recorder is off. */
  readonly records: Records | undefined;
  readonly exports: { metrics(): ExtraMetric[] };
  readonly certificates: Pick<ManagedCertificates, "stepOf">;
  readonly sink: { metrics(): ExtraMetric[] };
  readonly configuration: PackedIr;
  readonly status: ConfigStatus;
  readonly history: TrafficHistory;
  /** See `Follower`. */
  preview(id: string): Promise<PackedIr> | undefined;
  /** Where a field of the configuration in effect is written; see `Follower`. */
  readonly locate: Locate;
  /** See `Follower`. */
  difference(secret: ReadonlySet<string>): Promise<ConfigDifference>;
  readonly pending: readonly string[];
  readonly logFilter: string;
  readonly addresses: Readonly<Record<string, readonly string[]>>;
  readonly draining: boolean;
  setLogFilter(filter: string): void;
  shutdown(): Promise<void>;
}

/** The gateway as the admin, stats and readiness servers see it. */
export function makePlane(gateway: PlaneSource): AdminPlane {
  const { supervisor, settings } = gateway;
  const version = packageVersion();
  const startFilter = gateway.logFilter;
  const hidden = sensitiveHeaders(settings.sensitiveHeaders);
  const routeLists = new RouteLists();
  const probes = new Probes(supervisor);
  const heap = new GrownHeap();
  const routesInEffect = async () => {
    const { configuration, status } = gateway;
    const { generation } = status;
    const list = await routeLists.of(configuration);
    return { list, source: { generation, counted: supervisor, locate: locateIn(generation, gateway), hidden } };
  };
  let profiles = 0;
  let comparing = false;
  /** What dumps of the configuration are made from. */
  const dumped = async () => {
    const { ir, ...states } = await withEndpoints(gateway);
    const config = dumpSettings(
      { ...settings, locality: states.locality },
      gateway.configuration.frame,
      gateway.addresses,
    );
    return { ir, live: { ...states, ports: supervisor.ports, hidden }, config };
  };
  const configStatus = (): ConfigStatus => {
    const pending = pendingCertificates(gateway.configuration.frame, (each) => gateway.certificates.stepOf(each));
    return { ...gateway.status, ...(pending && { pendingCertificates: pending }) };
  };
  return {
    version,
    permits: { ...settings.admin, ui: settings.ui.enabled },
    configStatus: () => redactAll(configStatus()) as ConfigStatus,
    answered: () => heap.trim(),
    overview() {
      const { records } = gateway;
      const find = records && ((query: RecordQuery) => located(records.find(query), gateway));
      return redactAll(overviewOf(gateway, configStatus(), version, find)) as Overview;
    },
    routes: async (question) => {
      const { list, source } = await routesInEffect();
      return redactAll(list.page(question, source)) as RoutesAnswer;
    },
    route: async (key) => {
      const { list, source } = await routesInEffect();
      return redactAll(list.one(key, source)) as RouteView | undefined;
    },
    certificates: () =>
      redactAll(
        certificateViews(gateway.configuration.frame, (each) => gateway.certificates.stepOf(each)),
      ) as CertificatesAnswer,
    pending: () => gateway.pending,
    logFilter: () => gateway.logFilter,
    draining: () => gateway.draining,
    shutdown: () => void gateway.shutdown(),
    openTrace: async ({ expression, token, route, ...options }, reader) => {
      const filter = { expression, token, route, functions: gateway.configuration.frame.customFunctions ?? "" };
      try {
        return await supervisor.hub.open({ ...options, filter }, reader);
      } catch (error) {
        const message = messageOf(error);
        if (error instanceof CelError) throw new AdminBadRequest(`invalid expression: ${message}`);
        if (error instanceof TooManyTraces) throw new AdminUnavailable(message);
        throw error;
      }
    },
    openFollow: async ({ expression, where, count, forMs, maxBodyBytes, candidates }, reader) => {
      const functions = gateway.configuration.frame.customFunctions ?? "";
      compiled("invalid expression", () => compileFilter({ expression, functions }));
      compiled("where", () => where !== undefined && compileWhere(where, functions));
      try {
        const options = { reveal: false, maxBodyBytes, candidates };
        const filter = { expression, where, functions };
        return await supervisor.hub.follow({ count, forMs, options, filter }, reader);
      } catch (error) {
        throw error instanceof TooManyTraces ? new AdminUnavailable(error.message) : error;
      }
    },
    resumeFollow(id, reader) {
      try {
        return supervisor.hub.resume(id, reader);
      } catch (error) {
        throw error instanceof StreamGone ? new AdminGone(error.message) : error;
      }
    },
    async explain(value) {
      const question = readQuestion(value);
      const { generation: inEffect } = gateway.status;
      try {
        if (!("id" in question)) {
          const explained = await gateway.rehearsals.explain(question);
          if (question.config !== undefined) return { generation: null, ...explained };
          return { generation: inEffect, ...inFile(explained, locateIn(inEffect, gateway)) };
        }
        const { record, ...found } = newestOf(question.id, gateway);
        const { request, assume } = question;
        const explained = await gateway.rehearsals.explain({
          record,
          ...(request && { request }),
          ...(assume && { assume }),
        });
        // Of an earlier configuration, the tree may have places of both.
        const locate = record.generation === inEffect ? locateIn(inEffect, gateway) : NOWHERE;
        return { generation: inEffect, record: inFileOf(record, locate), ...found, ...inFile(explained, locate) };
      } catch (error) {
        throw error instanceof RehearsalBusy ? new AdminUnavailable(error.message) : error;
      }
    },
    async evaluate(value) {
      // Rehearsals have a thread of their own; this runs within the budget of one request.
      const { evaluate, readExpressionQuestion } = await import("../rehearsal/evaluate.ts");
      const question = readExpressionQuestion(value);
      const functions = gateway.configuration.frame.customFunctions ?? "";
      const recorded = "id" in question.about ? recordedOf(question.about.id, gateway) : undefined;
      const perRequest = settings.expressions.perRequest * 1000;
      return evaluate(question, { functions, hidden, perRequest, recorded });
    },
    async expressionNames(scope) {
      // Its examples are loaded only here.
      const { catalogOf } = await import("../cel/catalog.ts");
      return catalogOf(scope, gateway.configuration.frame.customFunctions ?? "");
    },
    async impact({ after, since }) {
      const impacts = impactsOf(gateway);
      if (comparing) throw new AdminUnavailable("another configuration is being compared; try again");
      comparing = true;
      try {
        if (!("preview" in after)) return await impacts.of({ ...after, resources: gateway.documents }, since);
        return await impacts.of({ configuration: await previewOf(after.preview, gateway) }, since);
      } finally {
        comparing = false;
      }
    },
    requests({ where, ...query }) {
      const condition = where === undefined ? undefined : whereOf(where, gateway);
      return located(recordsOf(gateway).find({ ...query, where: condition }), gateway);
    },
    requestsOf: (id) => located(recordsOf(gateway).withId(id), gateway),
    samples(since) {
      const { generation } = gateway.status;
      const configuration = fingerprintOf(unpackIr(gateway.configuration), hidden);
      return sampleFileText(impactsOf(gateway).samples(since), { generation, configuration });
    },
    backends: async (query) => redactAll((await backendViews(gateway)).list(query)) as BackendsAnswer,
    backend: async (key) => redactAll((await backendViews(gateway)).one(key)) as BackendView | undefined,
    probe: async (key) => {
      const { keys, total } = (await backendViews(gateway)).endpointsOf(key) ?? {};
      if (keys === undefined || total === undefined) return undefined;
      const probed = await probes.of(keys);
      return redactAll({ key, endpoints: total, probes: probed }) as ProbeAnswer;
    },
    async configDump() {
      const { ir, live, config } = await dumped();
      const dump = { ...dumpIr(ir, live), version: versionInfo(), config };
      return redactAll(sorted(dump)) as ReturnType<typeof sorted>;
    },
    configDifference: async () => redactAll(await gateway.difference(hidden)) as ConfigDifference,
    async configParts(question) {
      const { generation } = gateway.status;
      const { ir, live, config } = await dumped();
      const source = { ir, live, settings: config, generation, locate: locateIn(generation, gateway) };
      return redactAll(await configParts(source, question)) as ConfigPartsAnswer;
    },
    setLogFilter(directives, reset) {
      const base = parseLogFilter(reset ? startFilter : gateway.logFilter);
      try {
        gateway.setLogFilter((directives === "" ? base : base.with(directives)).toString());
      } catch {
        throw new AdminBadRequest(`Invalid level provided: ${directives}`);
      }
      return gateway.logFilter;
    },
    async memory() {
      const threads: NamedThreadMemory[] = [{ thread: "main", ...readThreadMemory() }];
      for (const [thread, memory] of await supervisor.collect("memory", undefined)) threads.push({ thread, ...memory });
      return memoryReport(threads);
    },
    async cpuProfile(seconds, hz, signal) {
      const id = profiles++;
      const main = await startCpuProfile(hz);
      await supervisor.collect("cpuStart", { id, frequency: hz });
      await delay(seconds * 1000, undefined, { signal }).catch(() => undefined);
      const threads = new Map<string, CpuProfile>();
      for (const [thread, profile] of await supervisor.collect("cpuStop", { id }))
        if (profile !== undefined) threads.set(thread, profile);
      threads.set("main", await main.stop());
      const list = Array.from(threads, ([thread, profile]) => ({ thread, profile }));
      return mergeCpuProfiles(list, hz);
    },
    async heapProfile() {
      const threads = [{ thread: "main", profile: await heapProfile() }];
      for (const [thread, profile] of await supervisor.collect("heap", undefined)) threads.push({ thread, profile });
      return mergeHeapProfiles(threads);
    },
    tasks: async () => ({ admin: [], workload: await supervisor.tasks() }),
    async metricsText(format) {
      const snapshot = supervisor.metrics();
      const extra = await processMetrics({ tag: version, synchronized: gateway.status.synchronized });
      extra.push(...endpointMetrics(await supervisor.endpoints()));
      extra.push(
        ...certificateMetrics(gateway.configuration.frame),
        ...orderMetrics(gateway.configuration.frame, (each) => gateway.certificates.stepOf(each)),
        ...documentMetrics(gateway.status),
        ...gateway.sink.metrics(),
        ...gateway.exports.metrics(),
      );
      const { remove, fields } = settings.metrics;
      const exemplars = format === "openMetrics" ? gateway.records?.exemplars() : undefined;
      return renderMetrics(snapshot, extra, { remove, custom: Object.keys(fields.add), format, exemplars });
    },
  };
}

/** The configuration in effect, and the state of its endpoints. */
async function withEndpoints({
  supervisor,
  configuration,
  settings,
}: PlaneSource): Promise<LiveEndpoints & { readonly ir: Ir }> {
  const [endpoints, calls] = await Promise.all([supervisor.endpoints(), supervisor.backendCalls()]);
  const ir = unpackIr(configuration);
  return { ir, endpoints, calls, locality: withLocalityOfNode(settings.locality, ir.workloads) };
}

async function backendViews(gateway: PlaneSource): Promise<BackendViews> {
  const { generation } = gateway.status;
  const { ir, ...live } = await withEndpoints(gateway);
  const history = gateway.supervisor.health.history;
  return new BackendViews(ir, { ...live, history, generation, locate: locateIn(generation, gateway) });
}

/** The newest record with this id, and how many there are, if several. Throws NoRecord. */
function newestOf(
  id: string,
  gateway: PlaneSource,
): Required<Pick<Explanation, "record">> & Pick<Explanation, "alike"> {
  const answer = recordsOf(gateway).withId(id);
  const [record] = answer.records;
  if (record === undefined) throw new NoRecord(id, [answer]);
  return { record, ...(answer.found > 1 && { alike: answer.found }) };
}

/** The newest record with this id, and what expressions read of it. Throws NoRecord. */
function recordedOf(id: string, gateway: PlaneSource): { readonly record: RequestRecord; readonly parts: Activation } {
  const { record } = newestOf(id, gateway);
  return { record, parts: recordsOf(gateway).partsOf(id) ?? {} };
}

const NOWHERE: Locate = () => undefined;

/** Where the configuration of this generation is written, as long as it is in effect. */
function locateIn(generation: number, { status, locate }: PlaneSource): Locate {
  return status.generation === generation ? locate : NOWHERE;
}

/** The records with the places of what decided, of the configuration in effect. */
function located(answer: RecordAnswer, gateway: PlaneSource): RecordAnswer {
  const { generation } = gateway.status;
  const { locate } = gateway;
  const records = answer.records.map((each) => (each.generation === generation ? inFileOf(each, locate) : each));
  return { ...answer, records };
}

function inFileOf(record: RequestRecord, locate: Locate): RequestRecord {
  const { decider } = record;
  return decider === undefined ? record : { ...record, decider: withPlace(decider, locate) };
}

/** Throws AdminBadRequest without samples. */
function impactsOf({ impacts }: PlaneSource): Impacts {
  if (!impacts.areKnown)
    throw new AdminBadRequest("no samples are taken: config.recorder.samples is 0, or config.recorder.off is set");
  return impacts;
}

/** Throws AdminBadRequest if the controller has no such preview. */
async function previewOf(id: string, gateway: PlaneSource): Promise<PackedIr> {
  const preview = gateway.preview(id);
  if (preview === undefined) throw new AdminBadRequest("this gateway has no controller that could keep a preview");
  try {
    return await preview;
  } catch (error) {
    throw new AdminBadRequest(`the controller has not sent the preview: ${messageOf(error)}`);
  }
}

function recordsOf({ records }: PlaneSource): Records {
  if (records === undefined) throw new AdminBadRequest("the recorder is off: config.recorder.off");
  return records;
}

function whereOf(text: string, { configuration }: PlaneSource): Condition {
  return compiled("where", () => compileWhere(text, configuration.frame.customFunctions ?? ""));
}

/** The result of `compile`; throws AdminBadRequest, which begins with `what`, for an expression that does not compile. */
function compiled<Result>(what: string, compile: () => Result): Result {
  try {
    return compile();
  } catch (error) {
    if (error instanceof CelError) throw new AdminBadRequest(`${what}: ${error.message}`);
    throw error;
  }
}

/** Top-level keys in alphabetical order (reference 4.4). */
function sorted(dump: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(dump).sort(([a], [b]) => (a < b ? -1 : 1)));
}

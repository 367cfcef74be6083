import type { Overview, TrafficPoint } from "../../admin/plane/answers.ts";
import type { RequestRecord } from "../../recorder/records.ts";
import { decidedBy } from "../../report/recorded.ts";
import { inPod, mergeReach } from "./records.ts";
import { mostOf, type OfReplica, sumOf } from "./replica.ts";

/** As in the overview of one gateway. */
const MOST_GROUPS = 50;

/**
 * Whether all is well with replicas, at least one: sums of their traffic, for percentiles the largest, groups of failures counted together. The state of each replica is beside
 * it (`Merged`); here are all tasks and workers, and the status of the configuration where it is worst.
 */
export function mergeOverviews(answers: readonly OfReplica<Overview>[]): Overview {
  const all = answers.map(({ answer }) => answer);
  const listeners = new Map(all.flatMap((each) => each.listeners).map((listener) => [listener.key, listener]));
  const workers = answers.flatMap(({ pod, answer }) =>
    answer.workers.map((worker) => ({ ...worker, ...(pod !== undefined && { pod }) })),
  );
  return {
    version: [...new Set(all.map(({ version }) => version))].join(", "),
    status: mergeStatus(all.map(({ status }) => status)),
    pending: [...new Set(all.flatMap(({ pending }) => pending))],
    draining: all.every(({ draining }) => draining),
    workers,
    listeners: [...listeners.values()],
    traffic: mergeTraffic(all.map(({ traffic }) => traffic)),
    failures: mergeFailures(answers),
  };
}

/** The status that needs attention first. @throws RangeError without any */
export function mergeStatus(statuses: readonly Overview["status"][]): Overview["status"] {
  const worst =
    statuses.find(({ lastError }) => lastError !== null) ??
    statuses.find(({ synchronized }) => !synchronized) ??
    statuses[0];
  if (worst === undefined) throw new RangeError("no replica has a status");
  return worst;
}

/** Replicas count at the same times, which are multiples of the step. One that has no point then has had no traffic yet. */
function mergeTraffic(all: readonly Overview["traffic"][]): Overview["traffic"] {
  const points = Map.groupBy(
    all.flatMap((each) => each.points),
    ({ time }) => time,
  );
  return {
    step: Math.max(...all.map(({ step }) => step)),
    points: [...points].map(([time, at]) => mergePoints(time, at)).sort((a, b) => (a.time < b.time ? -1 : 1)),
  };
}

function mergePoints(time: string, points: readonly TrafficPoint[]): TrafficPoint {
  const p50 = mostOf(points, (point) => point.p50);
  const p99 = mostOf(points, (point) => point.p99);
  return {
    time,
    seconds: mostOf(points, ({ seconds }) => seconds) ?? 0,
    requests: sumOf(points, ({ requests }) => requests),
    errors: sumOf(points, ({ errors }) => errors),
    ...(p50 !== undefined && { p50 }),
    ...(p99 !== undefined && { p99 }),
  };
}

/** Files of replicas may be at different places; the same field of each decides the same. */
function withoutPlace(record: RequestRecord): RequestRecord {
  const { decider } = record;
  if (decider?.origin === undefined) return record;
  const { place: _, ...origin } = decider.origin;
  return { ...record, decider: { ...decider, origin } };
}

/** null: no replica records requests. */
function mergeFailures(answers: readonly OfReplica<Overview>[]): Overview["failures"] {
  const found = answers.flatMap(({ pod, answer: { failures } }) => (failures === null ? [] : [{ pod, ...failures }]));
  const [first] = found.toSorted((a, b) => (a.since < b.since ? -1 : 1));
  if (first === undefined) return null;
  const reach = mergeReach(found);
  const groups = Map.groupBy(
    found.flatMap(({ pod, groups }) => groups.map((group) => ({ ...group, example: inPod(group.example, pod) }))),
    ({ route, status, example }) => JSON.stringify([route, status, decidedBy(withoutPlace(example))]),
  );
  const merged = [...groups.values()].flatMap((alike) => {
    const [newest] = alike.toSorted((a, b) => (a.example.time > b.example.time ? -1 : 1));
    const count = sumOf(alike, (group) => group.count);
    return newest === undefined ? [] : [{ ...newest, count, share: reach.requests === 0 ? 0 : count / reach.requests }];
  });
  return {
    since: first.since,
    found: sumOf(found, (each) => each.found),
    groups: merged.sort((a, b) => b.count - a.count).slice(0, MOST_GROUPS),
    ...reach,
  };
}

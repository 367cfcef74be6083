import {
  type BackendsAnswer,
  type BackendView,
  type EndpointView,
  isFailing,
  type ProbeAnswer,
  type Shortened,
} from "../../admin/plane/backends.ts";
import { averageOf, mostOf, type OfReplica, sumOf } from "./replica.ts";

/** The states of an endpoint, the one that needs attention first at the top. */
const STATES: Readonly<Record<EndpointView["state"], number>> = {
  evicted: 0,
  unhealthy: 1,
  unresolved: 2,
  notReady: 2,
  pending: 3,
  healthy: 4,
  unused: 5,
};

/** The backends of replicas, at least one. */
export function mergeBackends(answers: readonly OfReplica<BackendsAnswer>[]): BackendsAnswer {
  const alike = Map.groupBy(
    answers.flatMap(({ pod, answer }) => answer.backends.shown.map((backend) => ({ pod, answer: backend }))),
    ({ answer: { key } }) => key,
  );
  return {
    generation: answers[0]?.answer.generation ?? 0,
    backends: shortened(
      answers.map(({ answer }) => answer.backends),
      [...alike.values()].map(mergeBackend),
    ),
  };
}

/** One backend of replicas, at least one: sums, averages weighted by requests, and the worst state of each endpoint. */
export function mergeBackend(answers: readonly OfReplica<BackendView>[]): BackendView {
  const [first] = answers;
  if (first === undefined) throw new RangeError("no replica has the backend");
  const views = answers.map(({ answer }) => answer);
  const endpoints = Map.groupBy(
    answers.flatMap(({ pod, answer }) => answer.endpoints.shown.map((endpoint) => ({ pod, answer: endpoint }))),
    ({ answer: { addresses } }) => addresses.join(),
  );
  const merged = [...endpoints.values()].map(mergeEndpoint);
  return {
    ...first.answer,
    requests: sumOf(views, ({ requests }) => requests),
    // Each replica may evict another endpoint; those that it does not show are in its own count only.
    failing: Math.max(merged.filter(isFailing).length, ...views.map(({ failing }) => failing)),
    endpoints: shortened(
      views.map((view) => view.endpoints),
      merged.sort((a, b) => STATES[a.state] - STATES[b.state]),
    ),
  };
}

/** What the probes of all replicas, at least one, have found: those of one endpoint stand together, each with its pod. */
export function mergeProbes(answers: readonly OfReplica<ProbeAnswer>[]): ProbeAnswer {
  const [first] = answers;
  if (first === undefined) throw new RangeError("no replica has probed");
  const probes = answers.flatMap(({ pod, answer }) =>
    answer.probes.map((probe) => (pod === undefined ? probe : { ...probe, pod })),
  );
  return {
    ...first.answer,
    endpoints: mostOf(answers, ({ answer }) => answer.endpoints) ?? 0,
    probes: [...Map.groupBy(probes, ({ address }) => address).values()].flat(),
  };
}

function mergeEndpoint(answers: readonly OfReplica<EndpointView>[]): EndpointView {
  const sorted = answers.toSorted((a, b) => STATES[a.answer.state] - STATES[b.answer.state]);
  const [worst] = sorted;
  if (worst === undefined) throw new RangeError("no replica has the endpoint");
  const views = sorted.map(({ answer }) => answer);
  const pools = views.flatMap(({ pool }) => pool ?? []);
  const limits = views.flatMap((view) => view.limits ?? []);
  const checks = views.flatMap(({ check }) => check ?? []);
  const alike = sorted.filter(({ answer }) => answer.state === worst.answer.state);
  return {
    ...worst.answer,
    ...(alike.length < sorted.length && { stateAt: alike.flatMap(({ pod }) => pod ?? []) }),
    ...(checks[0] !== undefined && {
      check: {
        ...checks[0],
        passed: sumOf(checks, ({ passed }) => passed),
        failed: sumOf(checks, (each) => each.failed),
      },
    }),
    changes: views.flatMap(({ changes }) => changes).sort((a, b) => b.at - a.at),
    health: averageOf(
      views,
      ({ health }) => health,
      ({ requests }) => requests,
    ),
    latency: averageOf(
      views.filter(({ latency }) => latency > 0),
      ({ latency }) => latency,
      ({ requests }) => requests,
    ),
    active: sumOf(views, ({ active }) => active),
    requests: sumOf(views, ({ requests }) => requests),
    consecutiveFailures: mostOf(views, (view) => view.consecutiveFailures) ?? 0,
    ...(pools.length > 0 && {
      pool: {
        active: sumOf(pools, ({ active }) => active),
        idle: sumOf(pools, ({ idle }) => idle),
        connecting: sumOf(pools, ({ connecting }) => connecting),
        waiting: sumOf(pools, ({ waiting }) => waiting),
      },
    }),
    ...(limits.length > 0 && {
      limits: {
        connections: sumOf(limits, ({ connections }) => connections),
        waiting: sumOf(limits, ({ waiting }) => waiting),
        requests: limits.some(({ requests }) => requests === null)
          ? null
          : sumOf(limits, ({ requests }) => requests ?? 0),
        rejected: sumOf(limits, ({ rejected }) => rejected),
      },
    }),
    ...(views.some(({ perWorker }) => perWorker) && { perWorker: true as const }),
  };
}

/** The elements that the replicas show, and how many there are: at least as many as the replica with the most of them has. */
function shortened<T>(lists: readonly Shortened<unknown>[], shown: readonly T[]): Shortened<T> {
  return { total: Math.max(shown.length, mostOf(lists, ({ total }) => total) ?? 0), shown };
}

/**
 * How much longer requests take when each worker balances by its own calls only: a simulation of servers with queues, in which the balancers
 * and the table of loads are the real ones. Requests arrive at random at random workers; servers are busy for 70 % of their time, and serve a
 * request for an exponentially distributed time of 1 on average. Prints the time in the server, queue included.
 * Run: node bench/micro/shared-loads.ts [requests]
 */
import { BucketBalancer } from "../../src/upstream/balancers/balancer.ts";
import { ALGORITHMS } from "../../src/upstream/balancers/registry.ts";
import { Endpoint } from "../../src/upstream/endpoints/endpoint.ts";
import { SharedLoads } from "../../src/upstream/loads/shared-loads.ts";
import type { Pool } from "../../src/upstream/pools/pool.ts";

const SERVERS = 8;
const UTILIZATION = 0.7;
const WARM_UP = 0.1;

/** Of the algorithms, those that look at loads. */
type Algorithm = "PowerOfTwoChoices" | "LeastRequests";

interface Scenario {
  readonly algorithm: Algorithm;
  readonly workers: number;
  /** Requests that a server handles at once; further ones wait there. */
  readonly slots: number;
  readonly shared: boolean;
}

/** A server with places for `slots` requests at a time, by the times when each will be free. */
class Server {
  readonly #freeAt: number[];

  constructor(slots: number) {
    this.#freeAt = Array.from({ length: slots }, () => 0);
  }

  /** When a request that arrives now will be done. */
  serve(now: number, time: number): number {
    let next = 0;
    for (const [slot, at] of this.#freeAt.entries()) if (at < (this.#freeAt[next] ?? 0)) next = slot;
    const end = Math.max(now, this.#freeAt[next] ?? 0) + time;
    this.#freeAt[next] = end;
    return end;
  }
}

interface Running {
  readonly endpoint: Endpoint;
  readonly startedAt: number;
  readonly end: number;
}

/** Times of all requests, in the order of their arrival. */
function simulate({ algorithm, workers, slots, shared }: Scenario, requests: number): number[] {
  const random = generator(1);
  const exponential = (mean: number): number => -mean * Math.log(1 - random());
  const memory = SharedLoads.memoryFor(workers);
  const servers = new Map(Array.from({ length: SERVERS }, (_, i) => [`server-${i}`, new Server(slots)]));
  const balancers = Array.from({ length: workers }, (_, worker) => {
    const loads = new SharedLoads(memory, worker);
    const endpoints = [...servers.keys()].map((name) => {
      const endpoint = new Endpoint(name, { name, target: {} } as Pool, 1);
      const load = shared ? loads.claim(name) : undefined;
      if (load !== undefined) endpoint.shareLoad(load);
      return endpoint;
    });
    return new BucketBalancer([[endpoints]], ALGORITHMS[algorithm](random));
  });
  const running = new Heap();
  const times: number[] = [];
  const gap = 1 / (SERVERS * slots * UTILIZATION);
  for (let i = 0, now = 0; i < requests; i++, now += exponential(gap)) {
    for (let ended = running.before(now); ended !== undefined; ended = running.before(now))
      ended.endpoint.end(true, ended.end - ended.startedAt);
    const endpoint = balancers[Math.floor(random() * workers)]?.choose();
    const server = servers.get(endpoint?.key ?? "");
    if (endpoint === undefined || server === undefined) throw new Error("no endpoint was chosen");
    endpoint.begin();
    const end = server.serve(now, exponential(1));
    running.add({ endpoint, startedAt: now, end });
    times.push(end - now);
  }
  return times.slice(requests * WARM_UP);
}

/** Requests in progress, the one that ends first on top. */
class Heap {
  readonly #items: Running[] = [];

  add(item: Running): void {
    let at = this.#items.push(item) - 1;
    for (let up = (at - 1) >> 1; at > 0 && this.#end(up) > item.end; at = up, up = (at - 1) >> 1)
      this.#items[at] = this.#items[up] as Running;
    this.#items[at] = item;
  }

  /** Removes and returns the next one that ends before `now`. */
  before(now: number): Running | undefined {
    const [first] = this.#items;
    if (first === undefined || first.end > now) return undefined;
    const last = this.#items.pop() as Running;
    if (this.#items.length === 0) return first;
    let at = 0;
    for (;;) {
      const left = 2 * at + 1;
      const least = this.#end(left + 1) < this.#end(left) ? left + 1 : left;
      if (this.#end(least) >= last.end) break;
      this.#items[at] = this.#items[least] as Running;
      at = least;
    }
    this.#items[at] = last;
    return first;
  }

  #end(at: number): number {
    return this.#items[at]?.end ?? Number.POSITIVE_INFINITY;
  }
}

/** Mulberry32: the same numbers in each run. */
function generator(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

function percentile(times: readonly number[], share: number): number {
  return times.toSorted((a, b) => a - b)[Math.floor(times.length * share)] ?? 0;
}

const requests = Number(process.argv[2] ?? 200_000);
const WAYS = [
  { workers: 1, shared: false },
  { workers: 4, shared: false },
  { workers: 16, shared: false },
  { workers: 4, shared: true },
  { workers: 16, shared: true },
];
console.log("algorithm          slots  workers  loads   p50    p99    p99 against 1 worker");
for (const algorithm of ["PowerOfTwoChoices", "LeastRequests"] as const)
  for (const slots of [1, 4, 64]) {
    let alone = 0;
    for (const { workers, shared } of WAYS) {
      const times = simulate({ algorithm, workers, slots, shared }, requests);
      const p99 = percentile(times, 0.99);
      alone ||= p99;
      const change = 100 * (p99 / alone - 1);
      const cells = [
        algorithm.padEnd(18),
        String(slots).padStart(5),
        String(workers).padStart(8),
        (shared ? "shared" : "own").padStart(7),
        percentile(times, 0.5).toFixed(2).padStart(6),
        p99.toFixed(2).padStart(6),
        `${change >= 0 ? "+" : ""}${change.toFixed(0)} %`.padStart(8),
      ];
      console.log(cells.join(" "));
    }
  }

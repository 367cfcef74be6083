/** The impact of a change: what would become different for the requests that samples stand for, as data. schema/impact.json describes it. */
import type { ErrorCode } from "../base/errors.ts";
import type { Locate, Origin } from "../base/origin.ts";
import type { SampledRequest } from "../recorder/sample.ts";
import type { Decision } from "../rehearsal/decider.ts";
import type { Rehearsal } from "../rehearsal/rehearsal.ts";
import { headOf } from "../rehearsal/sampled-head.ts";
import type { Equality } from "../rehearsal/unknown-facts.ts";
import { type ChangeClass, type Difference, differencesOf } from "./difference.ts";
import { type Example, exampleOf } from "./example.ts";

/** Numbers of requests, and of the samples that stand for them. */
export interface Tally {
  /** By weight; not a whole number if backends are chosen by weight. */
  readonly requests: number;
  readonly samples: number;
}

export interface Impact extends Tally {
  /** Every class, also those without requests. A sample counts in several if its backend is chosen by weight. */
  readonly classes: Readonly<Record<ChangeClass | "unchanged", Tally>>;
  /** Requests that change in the same way, most requests first. */
  readonly changes: readonly Change[];
  /** There are more changes than are kept apart; `classes` has them all. Absent: there are not. */
  readonly incomplete?: true;
}

/** Requests that change in the same way. */
export interface Change extends Tally {
  readonly class: ChangeClass;
  readonly before: Decided;
  readonly after: Decided;
  /** For `changedOnTheWay`: what is different, such as `path`, `host`, `status` or the name of a header field. */
  readonly parts?: readonly string[];
  /** The same in the responses of backends, which are taken to have status 200. */
  readonly responseParts?: readonly string[];
  /** What is not known of the requests, though it decides: for `unknown` and the two that begin with `maybe`; else, whether they are refused, as now. */
  readonly needs?: readonly string[];
  readonly examples: readonly Example[];
}

/** What a configuration decides about requests. */
export interface Decided {
  /** The gateway responds with an error, or closes the connection. */
  readonly refused: boolean;
  /** `<namespace>/<name>` */
  readonly route?: string;
  readonly backend?: string;
  /** Of the gateway's own response. */
  readonly status?: number;
  readonly code?: ErrorCode;
  /** The policy that refuses. */
  readonly policy?: string;
  /** Where what refuses was written. */
  readonly origin?: Origin;
}

/** A configuration whose decisions are compared. */
interface ImpactSide {
  readonly rehearsal: Rehearsal;
  /** Where its values are in a file; absent: origins have no places. */
  readonly locate?: Locate;
}

interface ImpactOptions {
  /** The digest of a secret field with this value, latin1, as samples have it. Absent: what depends on such a field is not known. */
  readonly digestOf?: Equality["digestOf"];
}

/** Samples that a change names. */
export const MAX_EXAMPLES = 3;
/** Changes that are kept apart. */
const MAX_CHANGES = 1000;
/** Samples after which other work of the thread gets its turn. */
const BATCH = 500;

/** Compares what the two configurations decide about each sample. Rejects if a policy does not decide in time. */
export async function impactOf(
  samples: Iterable<SampledRequest>,
  before: ImpactSide,
  after: ImpactSide,
  { digestOf }: ImpactOptions = {},
): Promise<Impact> {
  const equality: Equality = { numbers: new Map(), ...(digestOf !== undefined && { digestOf }) };
  const counts = new Counts(new Map(before.rehearsal.binds.map(({ key, port }) => [key, port])));
  const weights = new EvenWeights(counts);
  let seen = 0;
  for (const sample of samples) {
    const head = headOf(sample);
    // Most decisions need no promise, whose turn would take as long as they do.
    const was = before.rehearsal.decisions(head, equality);
    const known = was instanceof Promise ? await was : was;
    const will = after.rehearsal.decisions(head, equality);
    weights.add(sample, differencesOf(known, will instanceof Promise ? await will : will));
    if (++seen % BATCH === 0) await new Promise(setImmediate);
  }
  weights.flush();
  return counts.impact(before.locate, after.locate);
}

/** A sample that has been compared. */
interface Compared {
  readonly sample: SampledRequest;
  readonly differences: readonly Difference[];
}

/** Samples of a route that share their weights. */
const SHARING = 16;

/**
 * Spreads the weights of samples that follow each other on a route. A sample stands for all requests since the one before, so after a pause in
 * sampling a single odd request would stand for hundreds of usual ones.
 */
class EvenWeights {
  readonly #counts: Counts;
  readonly #routes = new Map<string, Compared[]>();

  constructor(counts: Counts) {
    this.#counts = counts;
  }

  add(sample: SampledRequest, differences: readonly Difference[]): void {
    // A gateway policy may refuse some of its outcomes before there is a route.
    const route = differences.find(({ before }) => before.route !== undefined)?.before.route ?? "";
    if (route === "" && differences.some(({ needs }) => needs.length > 0)) {
      this.#counts.add(sample, sample.weight, differences);
      return;
    }
    const compared = this.#routes.get(route) ?? [];
    this.#routes.set(route, compared);
    compared.push({ sample, differences });
    if (compared.length === SHARING) this.#share(compared);
  }

  flush(): void {
    for (const compared of this.#routes.values()) this.#share(compared);
  }

  #share(compared: Compared[]): void {
    const weight = compared.reduce((all, { sample }) => all + sample.weight, 0) / compared.length;
    for (const { sample, differences } of compared) this.#counts.add(sample, weight, differences);
    compared.length = 0;
  }
}

type Counted<T> = { -readonly [K in keyof T]: T[K] };

/** A change while it is counted. */
interface Group {
  readonly class: ChangeClass;
  readonly tally: Counted<Tally>;
  readonly difference: Difference;
  readonly examples: Example[];
}

class Counts {
  /** Where binds listen, by their keys. */
  readonly #ports: ReadonlyMap<string, number>;
  readonly #all = nothing();
  readonly #classes: Record<ChangeClass | "unchanged", Counted<Tally>> = {
    granted: nothing(),
    refused: nothing(),
    maybeGranted: nothing(),
    maybeRefused: nothing(),
    movedRoute: nothing(),
    movedBackend: nothing(),
    changedOnTheWay: nothing(),
    unknown: nothing(),
    unchanged: nothing(),
  };
  readonly #groups = new Map<string, Group>();
  #isFull = false;

  constructor(ports: ReadonlyMap<string, number>) {
    this.#ports = ports;
  }

  add(sample: SampledRequest, weight: number, differences: readonly Difference[]): void {
    count(this.#all, weight);
    const [first] = differences;
    // The usual case.
    if (first !== undefined && differences.length === 1 && first.class === "unchanged") {
      count(this.#classes.unchanged, weight);
      return;
    }
    for (const [name, same] of Map.groupBy(differences, (each) => each.class))
      count(this.#classes[name], weight * sum(same));
    for (const same of Map.groupBy(differences, keyOf).values()) this.#addToGroup(sample, weight, same);
  }

  /** `same`: differences of one sample that belong to one group. */
  #addToGroup(sample: SampledRequest, weight: number, same: readonly Difference[]): void {
    const [difference] = same;
    if (difference === undefined || difference.class === "unchanged") return;
    const key = keyOf(difference);
    let group = this.#groups.get(key);
    if (group === undefined) {
      this.#isFull ||= this.#groups.size >= MAX_CHANGES;
      if (this.#isFull) return;
      group = { class: difference.class, tally: nothing(), difference, examples: [] };
      this.#groups.set(key, group);
    }
    count(group.tally, weight * sum(same));
    if (group.examples.length < MAX_EXAMPLES && !group.examples.some((each) => isAlike(each, sample)))
      group.examples.push(exampleOf(sample, this.#ports.get(sample.bind)));
  }

  impact(before: Locate | undefined, after: Locate | undefined): Impact {
    const changes = [...this.#groups.values()].map(({ class: name, tally, difference, examples }): Change => {
      const { parts, responseParts, needs } = difference;
      return {
        class: name,
        ...tally,
        before: decidedOf(difference.before, before),
        after: decidedOf(difference.after, after),
        ...(parts.length > 0 && name === "changedOnTheWay" && { parts }),
        ...(responseParts.length > 0 && name === "changedOnTheWay" && { responseParts }),
        ...(needs.length > 0 && { needs }),
        examples,
      };
    });
    changes.sort((a, b) => b.requests - a.requests);
    return { ...this.#all, classes: this.#classes, changes, ...(this.#isFull && { incomplete: true }) };
  }
}

function nothing(): Counted<Tally> {
  return { requests: 0, samples: 0 };
}

function count(tally: Counted<Tally>, requests: number): void {
  tally.requests += requests;
  tally.samples++;
}

function sum(differences: readonly Difference[]): number {
  return differences.reduce((all, { share }) => all + share, 0);
}

/** Alike for requests that change in the same way. */
function keyOf({ class: name, before, after, parts, responseParts, needs }: Difference): string {
  if (name === "unchanged") return name;
  const shown = name === "changedOnTheWay" ? [parts, responseParts] : [];
  return JSON.stringify([name, decidedOf(before, undefined), decidedOf(after, undefined), shown, needs]);
}

function decidedOf(
  { refused, route, backend, status, code, policy, origin }: Decision,
  locate: Locate | undefined,
): Decided {
  const place = origin && locate?.(origin.path);
  return {
    refused,
    ...(route !== undefined && { route }),
    ...(backend !== undefined && { backend }),
    ...(status !== undefined && { status }),
    ...(code !== undefined && { code }),
    ...(policy !== undefined && { policy }),
    ...(origin !== undefined && { origin: place === undefined ? origin : { ...origin, place } }),
  };
}

/** They look the same without their times. */
function isAlike(example: Example, { method, authority, target }: SampledRequest): boolean {
  return example.method === method && example.authority === authority && example.target === target;
}

/** What a rehearsal finds out. Outcomes that differ in nothing that anybody sees become one. */
import type { RequestRecord } from "../recorder/records.ts";
import type { SentRequest } from "./assumed-backend.ts";
import { withoutPlace } from "./assumptions.ts";
import { CHANGING_FIELDS } from "./changing-fields.ts";
import type { Given, Lack } from "./choices.ts";
import type { ReceivedResponse } from "./client.ts";
import { CONDITION } from "./condition.ts";
import type { Run } from "./tree.ts";

/** What happens to the request if services respond and backends are chosen as `given`. */
export interface Outcome extends Run {
  readonly given: Given;
  /** What is not known, though the outcome depends on it: `given` has conditions for it. */
  readonly needs: readonly Lack[];
  /** Share of requests that get this outcome, by the weights of backends. */
  readonly share: number;
  /** What the flight recorder has of it, if only a part of the request is known: it is compared with another record. */
  readonly recorded: RequestRecord | undefined;
  /** What backends get, with secrets. */
  readonly sent: readonly SentRequest[];
  readonly received: ReceivedResponse;
}

/** The outcomes without choices that do not matter, and with the shortest names of those that do. */
export function mergeAlike(outcomes: readonly Outcome[], assumed: Given): readonly Outcome[] {
  return withShortNames(mergeUnreached(mergeConditions(outcomes)), assumed);
}

/** A condition that depends on what is not known may not matter: outcomes that differ in nothing else become one. */
function mergeConditions(outcomes: readonly Outcome[]): readonly Outcome[] {
  const conditions = new Set(
    outcomes.flatMap(({ given }) => Object.keys(given)).filter((name) => name.startsWith(CONDITION)),
  );
  return [...conditions].reduce((all, name) => {
    const groups = Map.groupBy(all, (outcome) => {
      const { [name]: value, ...given } = outcome.given;
      return value === undefined ? outcome : JSON.stringify([given, effectOf(outcome)]);
    });
    return [...groups.values()].flatMap((group) => {
      const [first] = group;
      if (first === undefined || group.length < 2) return group;
      const { [name]: _any, ...given } = first.given;
      return [{ ...first, given, needs: first.needs.filter(({ choice }) => choice !== name) }];
    });
  }, outcomes);
}

/** What clients, backends and the log see, without what differs from run to run. */
function effectOf({ record, sent, received }: Outcome): unknown {
  const { route, endpoint, status, error, reason } = record ?? {};
  const requests = sent.map(({ method, target, headers }) => [method, target, stable(headers)]);
  return [route, endpoint, status, error, reason, requests, responseOf(received)];
}

function stable(headers: readonly string[]): string[] {
  return headers.filter((_, i) => !CHANGING_FIELDS.has((headers[i - (i % 2)] ?? "").toLowerCase()));
}

function responseOf({ headers, body }: ReceivedResponse): unknown {
  return [stable(headers), body.toString("latin1")];
}

/** The choice of a backend does not matter to a request that reaches none: outcomes that differ in nothing else become one. */
function mergeUnreached(outcomes: readonly Outcome[]): Outcome[] {
  const groups = Map.groupBy(outcomes, (outcome) => {
    const name = unreachedSplit(outcome);
    if (name === undefined) return outcome;
    const { given, record, received } = outcome;
    return JSON.stringify([name, { ...given, [name]: "" }, record?.status, record?.error, responseOf(received)]);
  });
  return [...groups.values()].flatMap((group) => {
    const [first] = group;
    const name = first && unreachedSplit(first);
    if (first === undefined || name === undefined) return group;
    const splits = new Map(first.splits);
    if (group.length <= (splits.get(name)?.others.length ?? 0)) return group;
    const { [name]: _any, ...given } = first.given;
    splits.delete(name);
    return [{ ...first, given, splits, share: group.reduce((sum, { share }) => sum + share, 0) }];
  });
}

/** The choice between the backends of the route, of which the request reaches none. */
function unreachedSplit({ exchange, splits }: Outcome): string | undefined {
  if (exchange?.selected.reachedBackend !== false) return undefined;
  return [...splits].find(([, { route }]) => route === exchange.selected.route?.key)?.[0];
}

/** Places are left out of the names of what is asked for at one place only, unless `assumed` has them. */
function withShortNames(outcomes: readonly Outcome[], assumed: Given): Outcome[] {
  const names = new Set(
    outcomes.flatMap(({ given }) => Object.keys(given).filter((name) => !name.startsWith(CONDITION))),
  );
  const places = Map.groupBy(names, withoutPlace);
  const short = (name: string): string =>
    name in assumed || name.startsWith(CONDITION) || places.get(withoutPlace(name))?.length !== 1
      ? name
      : withoutPlace(name);
  return outcomes.map((outcome) => ({
    ...outcome,
    given: Object.fromEntries(Object.entries(outcome.given).map(([name, value]) => [short(name), value])),
  }));
}

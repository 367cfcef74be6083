import { type Change, type Impact, MAX_EXAMPLES, type Tally } from "./impact.ts";

/** The impact on the requests of one gateway. */
export interface GatewayImpact extends Impact {
  /** ISO 8601: when the oldest of its samples arrived; null without samples. */
  readonly since: string | null;
}

/** The impact on the requests of all replicas of a gateway; at least one. */
export function mergeImpacts(impacts: readonly GatewayImpact[]): GatewayImpact {
  const changes = Map.groupBy(
    impacts.flatMap((each) => each.changes),
    ({ class: name, before, after, parts, responseParts, needs }) =>
      JSON.stringify([name, before, after, parts, responseParts, needs]),
  );
  const [oldest = null] = impacts.flatMap(({ since }) => since ?? []).sort();
  return {
    ...sum(impacts),
    classes: {
      granted: sum(impacts.map(({ classes }) => classes.granted)),
      refused: sum(impacts.map(({ classes }) => classes.refused)),
      maybeGranted: sum(impacts.map(({ classes }) => classes.maybeGranted)),
      maybeRefused: sum(impacts.map(({ classes }) => classes.maybeRefused)),
      movedRoute: sum(impacts.map(({ classes }) => classes.movedRoute)),
      movedBackend: sum(impacts.map(({ classes }) => classes.movedBackend)),
      changedOnTheWay: sum(impacts.map(({ classes }) => classes.changedOnTheWay)),
      unknown: sum(impacts.map(({ classes }) => classes.unknown)),
      unchanged: sum(impacts.map(({ classes }) => classes.unchanged)),
    },
    changes: [...changes.values()].flatMap(mergeAlike).sort((a, b) => b.requests - a.requests),
    ...(impacts.some(({ incomplete }) => incomplete) && { incomplete: true }),
    since: oldest,
  };
}

function mergeAlike(alike: readonly Change[]): Change[] {
  const [first] = alike;
  if (first === undefined) return [];
  const examples = alike.flatMap((each) => each.examples).slice(0, MAX_EXAMPLES);
  return [{ ...first, ...sum(alike), examples }];
}

function sum(tallies: readonly Tally[]): Tally {
  return {
    requests: tallies.reduce((all, { requests }) => all + requests, 0),
    samples: tallies.reduce((all, { samples }) => all + samples, 0),
  };
}

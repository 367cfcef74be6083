import assert from "node:assert/strict";
import { test } from "node:test";
import type { Change, Impact, Tally } from "./impact.ts";
import { type GatewayImpact, mergeImpacts } from "./merge.ts";

const NONE: Tally = { requests: 0, samples: 0 };

function change(requests: number, backend: string, target: string): Change {
  const example = { time: "2026-11-28T12:00:00.000Z", method: "GET", authority: "shop.example", target };
  const decided = { refused: false, route: "default/api" };
  const before = { ...decided, backend: "old" };
  const after = { ...decided, backend };
  return { class: "movedBackend", requests, samples: 1, before, after, examples: [example, example] };
}

function impact(since: string | null, unchanged: Tally, ...changes: readonly Change[]): GatewayImpact {
  const movedBackend = changes.reduce((all, { requests }) => all + requests, 0);
  const classes: Impact["classes"] = {
    granted: NONE,
    refused: NONE,
    maybeGranted: NONE,
    maybeRefused: NONE,
    movedRoute: NONE,
    movedBackend: { requests: movedBackend, samples: changes.length },
    changedOnTheWay: NONE,
    unknown: NONE,
    unchanged,
  };
  const requests = movedBackend + unchanged.requests;
  return { requests, samples: changes.length + unchanged.samples, classes, changes, since };
}

test("changes of all replicas that are alike are one; the largest is first, and the oldest sample counts", () => {
  const merged = mergeImpacts([
    impact("2026-11-28T12:00:00.000Z", { requests: 10, samples: 2 }, change(3, "new", "/a"), change(5, "other", "/b")),
    impact("2026-11-28T11:00:00.000Z", { requests: 1, samples: 1 }, change(4, "new", "/c")),
    impact(null, NONE),
  ]);
  assert.deepEqual([merged.requests, merged.samples, merged.since], [23, 6, "2026-11-28T11:00:00.000Z"]);
  assert.deepEqual(merged.classes.unchanged, { requests: 11, samples: 3 });
  assert.deepEqual(merged.classes.movedBackend, { requests: 12, samples: 3 });
  assert.deepEqual(
    merged.changes.map(({ requests, samples, after, examples }) => [
      requests,
      samples,
      after.backend,
      examples.map(({ target }) => target),
    ]),
    [
      [7, 2, "new", ["/a", "/a", "/c"]],
      [5, 1, "other", ["/b", "/b"]],
    ],
  );
  assert.equal(merged.incomplete, undefined);
  const all = mergeImpacts([merged, { ...impact(null, NONE), incomplete: true }]);
  assert.equal(all.incomplete, true);
});

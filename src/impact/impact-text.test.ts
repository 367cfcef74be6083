import assert from "node:assert/strict";
import { test } from "node:test";
import type { Origin } from "../base/origin.ts";
import type { ChangeClass } from "./difference.ts";
import type { Change, Decided, Impact } from "./impact.ts";
import { changesIn, FAIL_ON, impactText, refusedText } from "./impact-text.ts";

const NOTHING = { requests: 0, samples: 0 };
const PASSED: Decided = { refused: false, route: "shop/api", backend: "shop/api:80" };

function change(name: ChangeClass, after: Partial<Decided>, more: Partial<Change> = {}): Change {
  const example = { time: "2026-11-28T12:00:00.000Z", method: "GET", authority: "shop.example", target: "/api" };
  const tally = { requests: 412, samples: 6 };
  return { class: name, ...tally, before: PASSED, after: { ...PASSED, ...after }, examples: [example], ...more };
}

function impactOf(...changes: readonly Change[]): Impact {
  const classes: Record<ChangeClass | "unchanged", { requests: number; samples: number }> = {
    granted: NOTHING,
    refused: NOTHING,
    maybeGranted: NOTHING,
    maybeRefused: NOTHING,
    movedRoute: NOTHING,
    movedBackend: NOTHING,
    changedOnTheWay: NOTHING,
    unknown: NOTHING,
    unchanged: { requests: 8619, samples: 134 },
  };
  for (const { class: name, requests, samples } of changes) classes[name] = { requests, samples };
  return { requests: 9031, samples: 140, classes, changes };
}

/** What the line of the only change says, without its numbers. */
function said(only: Change): string {
  const [, line = ""] = impactText(impactOf(only)).split("\n");
  return line.replace(/^ *≈ 412 /, "").replace(/ \(4\.6 %, 6 samples\)$/, "");
}

const DENIED = { refused: true, status: 403, policy: "authorization" } as const;
const IN_FILE: Origin = { path: ["binds", 0], place: { file: "new.yaml", line: 31, column: 5 } };
const ofRoute = (name: string): Origin => ({
  object: { kind: "HTTPRoute", namespace: "shop", name },
  path: ["spec", "rules", 1],
});

test("a line says what happens, by what, where that is written, and on which route", () => {
  assert.equal(
    said(change("refused", { ...DENIED, origin: IN_FILE })),
    "are refused with 403 by authorization at new.yaml:31 on the route shop/api",
  );
  assert.equal(
    said(change("refused", { ...DENIED, origin: ofRoute("api") })),
    "are refused with 403 by authorization at HTTPRoute shop/api spec.rules[1]",
    "the route's object is its name",
  );
  assert.match(
    said(change("refused", { ...DENIED, origin: ofRoute("parent") })),
    /shop\/parent spec\.rules\[1\] on the route shop\/api$/,
  );
  assert.equal(
    said(change("movedBackend", { backend: "shop/api-v2:80" })),
    "go to shop/api-v2:80 instead of shop/api:80 on the route shop/api",
  );
  assert.equal(
    said(change("unknown", {}, { needs: ["the field cookie"] })),
    "may change on the route shop/api: that depends on the field cookie",
  );
});

test("what is different on the way there and back", () => {
  const different = (parts: readonly string[], responseParts: readonly string[]): string =>
    said(change("changedOnTheWay", {}, { parts, responseParts }));
  assert.equal(
    different(["path", "x-team"], []),
    "reach shop/api:80 with a different path, x-team on the route shop/api",
  );
  assert.equal(
    different([], ["cache-control"]),
    "get the response of shop/api:80 with a different cache-control on the route shop/api",
  );
  assert.equal(
    different(["path"], ["cache-control"]),
    "reach shop/api:80 with a different path, and get its response with a different cache-control on the route shop/api",
  );
});

test("only refused requests, with their places", () => {
  const origin: Origin = { path: ["binds", 0] };
  const all = impactOf(change("movedBackend", { backend: "b" }), change("refused", { ...DENIED, origin }));
  assert.equal(
    refusedText(all, () => ({ file: "gateway.yaml", line: 7, column: 1 })),
    [
      "Of ≈ 9,031 requests (140 samples)",
      "  ≈ 412 are refused with 403 by authorization at gateway.yaml:7 on the route shop/api (4.6 %, 6 samples)",
      "          GET shop.example/api",
    ].join("\n"),
  );
});

test("classes that --fail-on names", () => {
  const moved = impactOf(change("movedBackend", { backend: "b" }));
  assert.deepEqual(
    FAIL_ON.filter((name) => changesIn(moved, [name])),
    ["movedBackend", "moved"],
  );
});

test("a connection that is closed is no response", () => {
  const before = { refused: true, status: 404, code: "TG_ROUTE_NOT_FOUND" } as const;
  const closed = { before, after: { refused: true } } as const;
  assert.equal(
    said({ ...change("changedOnTheWay", {}), ...closed }),
    "get another response of the gateway: no response instead of 404",
  );
});

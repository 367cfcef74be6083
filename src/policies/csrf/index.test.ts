import assert from "node:assert/strict";
import { test } from "node:test";
import { GatewayError } from "../../base/errors.ts";
import { contextOf, creatorOf, RecordedTrace } from "../testing/context.ts";
import { csrf } from "./index.ts";

const create = creatorOf(csrf);

const POLICY = create({ additionalOrigins: ["https://partner.example", "http://dev.example:8080"] });

/** Whether a POST to http://example.com:8080 with these headers passes. */
function passes(headers: string[], method = "POST"): boolean {
  try {
    assert.equal(POLICY.onRequest?.(contextOf({ method, headers })), undefined);
    return true;
  } catch (error) {
    assert.ok(error instanceof GatewayError);
    assert.equal(error.status, 403);
    assert.equal(error.message, "CSRF validation failed");
    return false;
  }
}

test("Sec-Fetch-Site decides", () => {
  for (const [site, expected] of [
    ["same-origin", true],
    ["none", true],
    ["same-site", false],
    ["cross-site", false],
    ["anything", false],
  ] as const)
    assert.equal(passes(["sec-fetch-site", site]), expected, site);
  // The page of the gateway's own origin never sends cross-site.
  assert.equal(passes(["sec-fetch-site", "cross-site", "origin", "http://example.com:8080"]), false);
  assert.equal(passes(["sec-fetch-site", "cross-site", "origin", "https://partner.example"]), true);
  for (const sites of [
    ["cross-site", "same-origin"],
    ["same-origin", "cross-site"],
  ])
    assert.equal(passes(sites.flatMap((site) => ["sec-fetch-site", site])), false, sites.join());
  assert.equal(passes(["origin", "http://example.com:8080", "origin", "https://evil.example"]), false);
  // A form of the same origin, on a page without a referrer.
  assert.equal(passes(["sec-fetch-site", "same-origin", "origin", "null"]), true);
});

test("without Sec-Fetch-Site the origin decides; a request without either passes", () => {
  for (const [origin, expected] of [
    ["null", false],
    ["http://example.com:8080", true],
    ["http://EXAMPLE.com:8080", true],
    ["https://example.com:8080", false],
    ["http://example.com", false],
    ["https://partner.example", true],
    ["https://partner.example:443", true],
    ["http://dev.example:8080", true],
    ["http://dev.example", false],
    ["https://partner.example.evil", false],
    ["nonsense", false],
  ] as const)
    assert.equal(passes(["origin", origin]), expected, origin);
  assert.equal(passes([]), true);
});

test("safe methods pass", () => {
  for (const method of ["GET", "HEAD", "OPTIONS"]) assert.equal(passes(["sec-fetch-site", "cross-site"], method), true);
  for (const method of ["PUT", "DELETE", "PATCH", "get"])
    assert.equal(passes(["sec-fetch-site", "cross-site"], method), false);
});

test("a trailing dot of an origin's host is ignored", () => {
  assert.equal(passes(["origin", "http://example.com.:8080"]), true);
  assert.equal(passes(["origin", "http://example.com..:8080"]), false);
});

test("invalid origins are rejected at load", () => {
  for (const origin of ["partner.example", "https://*.example", "*"])
    assert.throws(() => create({ additionalOrigins: [origin] }), /csrf.additionalOrigins: ".*" is not an origin/);
});

test("reports its decision", () => {
  const trace = new RecordedTrace();
  POLICY.onRequest?.(contextOf({}, { trace }));
  POLICY.onRequest?.(contextOf({ method: "POST" }, { trace }));
  assert.throws(() => POLICY.onRequest?.(contextOf({ method: "POST", headers: ["origin", "http://x"] }, { trace })));
  assert.deepEqual(trace.events, [
    { kind: "csrf", reason: "GET changes nothing" },
    { kind: "csrf", details: { allowed: true } },
    {
      kind: "csrf",
      details: {
        allowed: false,
        reason: "the origin http://x is not in additionalOrigins, and not that of the request",
      },
      severity: "error",
    },
  ]);
});

/**
 * What a gateway really does with a request is an outcome of its rehearsal, with the same bytes to the backend and to the client; what it has
 * recorded of the request agrees with a rehearsal of that. CI's long run has more cases than these: `EXPLAIN_CONFIGURATIONS=1250`.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { configuration, written } from "../../test/fuzz/explain/cases.ts";
import { ExplainedGateway } from "../../test/fuzz/explain/play.ts";
import { noOpenssl } from "../../test/helpers/certificates.ts";
import { fc } from "../../test/helpers/property.ts";

const CONFIGURATIONS = Number(process.env.EXPLAIN_CONFIGURATIONS ?? 40);
const REQUESTS = 8;
/** Milliseconds: a run of 2,000 requests takes half a minute, and several times that on a busy machine. */
const LIMIT = Math.max(120_000, CONFIGURATIONS * 1000);

test("a rehearsal has the outcome of the real request", { timeout: LIMIT, skip: noOpenssl }, async (t) => {
  const gateway = await ExplainedGateway.start();
  try {
    const requests = fc.array(written, { minLength: REQUESTS, maxLength: REQUESTS });
    await fc.assert(
      fc.asyncProperty(configuration, requests, async (shape, each) => {
        const difference = await gateway.compare(shape, each);
        if (difference !== undefined)
          assert.deepEqual(difference.rehearsed[0], difference.real, JSON.stringify(difference.config));
      }),
      { numRuns: CONFIGURATIONS, endOnFailure: true },
    );
  } finally {
    await gateway.close();
  }
  const { all, routed, closed, single, recalled } = gateway.counts;
  t.diagnostic(
    `${all} requests, ${routed} match a route; ${single} of ${closed} without services and splits have one outcome; ${recalled} rehearsals of records`,
  );
  assert.ok(all >= CONFIGURATIONS * REQUESTS);
  assert.ok(routed > all / 2, `only ${routed} of ${all} requests match a route: the generator is too wide`);
  assert.ok(recalled > Math.min(CONFIGURATIONS, 250) / 2, `only ${recalled} rehearsals of records`);
  assert.ok(single >= 0.95 * closed, `only ${single} of ${closed} requests have one outcome`);
});

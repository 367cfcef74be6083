/** What the recorder still knows when its ring has turned many times; `npm run soak -- recorder` does it at 5,000 requests a second. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { RecordAnswer } from "../../../src/recorder/records.ts";
import { TestGateway } from "../../helpers/gateway.ts";
import { PipeliningClient } from "../../helpers/pipelining-client.ts";
import { RawPeer, statusOf } from "../../helpers/raw-peer.ts";

/** The smallest areas that can be configured. */
const BYTES = 64 * 1024;
const SLOTS = BYTES / 256;
const TURNS = 30;
/** Routes that fail. At 20 records a second for each, all together need more room at once than there is. */
const FAILING = 20;

function config(): object {
  const failing = Array.from({ length: FAILING }, (_, i) => ({
    name: `failing-${i}`,
    matches: [{ path: { exact: `/failing/${i}` } }],
    policies: { directResponse: { status: 503, body: "" } },
  }));
  return {
    config: { recorder: { recent: BYTES, kept: BYTES }, logging: { level: "info,request=off" } },
    binds: [
      {
        port: 0,
        listeners: [
          {
            routes: [
              {
                name: "admin",
                matches: [{ path: { pathPrefix: "/admin" } }],
                policies: {
                  authorization: { rules: [{ deny: "false" }, { deny: "true" }] },
                  directResponse: { status: 200 },
                },
              },
              ...failing,
              { name: "all", policies: { directResponse: { status: 200, body: "" } } },
            ],
          },
        ],
      },
    ],
  };
}

async function recordsOf(gateway: TestGateway, query: string): Promise<RecordAnswer> {
  const response = await fetch(`${gateway.url("admin")}/requests${query}`);
  return (await response.json()) as RecordAnswer;
}

/** Sends the paths and waits until all are recorded. */
async function flood(gateway: TestGateway, paths: readonly string[]): Promise<void> {
  using client = await PipeliningClient.connect(gateway.port(), 4);
  for (let i = 0; i < paths.length; i += 64) {
    client.send(paths.slice(i, i + 64));
    await client.until(Math.min(i + 64, paths.length));
  }
}

test("one rejection is found by its id and by its status when the ring has turned many times", async () => {
  await using gateway = await TestGateway.start(config());
  const denied = await RawPeer.ask(
    gateway.port(),
    "GET /admin/users HTTP/1.1\r\nHost: a.test\r\nX-Request-Id: rare-403\r\n\r\n",
  );
  assert.equal(statusOf(denied), 403);
  await flood(
    gateway,
    Array.from({ length: TURNS * SLOTS }, (_, i) => `/page/${i}`),
  );
  const where = encodeURIComponent('response.code == 403 && route == "default/admin"');
  for (const query of ["/rare-403", `?where=${where}`, "?errors=true&last=1h"]) {
    const { records, requests, completeSince = "" } = await recordsOf(gateway, query);
    assert.equal(records.length, 1, query);
    const [{ id, time = "", path, status, decider, kept } = assert.fail()] = records;
    assert.deepEqual({ id, path, status, kept }, { id: "rare-403", path: "/admin/users", status: 403, kept: true });
    assert.deepEqual([decider?.policy, decider?.rule], ["authorization", 1]);
    assert.ok(time < completeSince, "it has left the ring");
    assert.ok(requests > TURNS * SLOTS, "all are counted, also those without a record");
  }
});

test("floods of failures on many routes leave the only rejection of another one", async () => {
  await using gateway = await TestGateway.start(config());
  await RawPeer.ask(gateway.port(), "GET /admin HTTP/1.1\r\nHost: a.test\r\nX-Request-Id: rare-403\r\n\r\n");
  await flood(
    gateway,
    Array.from({ length: FAILING * 100 }, (_, i) => `/failing/${i % FAILING}`),
  );
  const { records } = await recordsOf(gateway, "?errors=true&limit=10000");
  const kept = records.filter((record) => record.kept === true);
  assert.equal(kept.length, SLOTS, "the area is full");
  assert.deepEqual(
    kept.filter(({ route }) => route === "default/admin").map(({ id }) => id),
    ["rare-403"],
  );
  const shares = Array.from(
    { length: FAILING },
    (_, i) => kept.filter(({ route }) => route === `default/failing-${i}`).length,
  );
  assert.ok(Math.max(...shares) - Math.min(...shares) <= 1, `the others share the rest: ${shares}`);
});

test("a flood of one failure is kept in part, and the rest of it is counted", async () => {
  await using gateway = await TestGateway.start(config());
  const sent = 1000;
  await flood(
    gateway,
    Array.from({ length: sent }, () => "/failing/0"),
  );
  const { records } = await recordsOf(gateway, "?errors=true&limit=10000");
  const kept = records.filter((record) => record.kept === true);
  assert.ok(kept.length >= 20 && kept.length < SLOTS, `${kept.length} are kept`);
  assert.equal(
    kept.reduce((sum, { leftOut = 0 }) => sum + 1 + leftOut, 0),
    sent,
  );
});

import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import type { ServerResponse } from "node:http";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { ofGateway, testCluster } from "../../../test/helpers/kube/tgctl.ts";
import type { GatewayImpact } from "../../impact/merge.ts";
import { serve } from "../fixtures/admin.ts";

const NONE = { requests: 0, samples: 0 };

/** What a replica would refuse of so many requests. */
function refusing(refused: number, since: string): GatewayImpact {
  const some = { requests: refused, samples: 1 };
  const example = { time: since, method: "GET", authority: "shop.example", target: "/admin" };
  const before = { refused: false, route: "shop/admin", backend: "admin" };
  const after = { refused: true, route: "shop/admin", status: 403, policy: "authorization" };
  return {
    requests: refused + 10,
    samples: 3,
    classes: {
      granted: NONE,
      refused: some,
      maybeGranted: NONE,
      maybeRefused: NONE,
      movedRoute: NONE,
      movedBackend: NONE,
      changedOnTheWay: NONE,
      unknown: NONE,
      unchanged: { requests: 10, samples: 2 },
    },
    changes: [{ class: "refused", ...some, before, after, examples: [example] }],
    since,
  };
}

/** The Gateway `shop/web` with these pods, whose admin servers respond to an impact as told. */
async function cluster(t: TestContext, pods: Readonly<Record<string, (response: ServerResponse) => void>>) {
  const made = await testCluster(t);
  made.gateway("web");
  const asked: string[] = [];
  for (const [name, respond] of Object.entries(pods)) {
    const admin = await serve(t, (request, response) => {
      asked.push(`${request.method} ${request.url?.replaceAll(/name=[^&]*/g, "name=…")}`);
      request.resume().on("end", () => respond(response));
    });
    made.pod(name, { labels: ofGateway("web") });
    made.connect(name, 15000, admin.port);
  }
  const file = join(made.folder, "new.yaml");
  await writeFile(file, "binds: []\n");
  return {
    ...made,
    asked,
    impact: (...words: readonly string[]) =>
      made.tgctl("impact", "gateway/web", "-n", "shop", "--config", file, ...words),
  };
}

const answer = (impact: GatewayImpact) => (response: ServerResponse) => response.end(JSON.stringify(impact));

test("the samples of all pods of a Gateway count", async (t) => {
  const { impact, asked } = await cluster(t, {
    "web-a": answer(refusing(5, "2026-11-28T12:00:00.000Z")),
    "web-b": answer(refusing(7, "2026-11-28T11:30:00.000Z")),
  });
  const { code, stdout, stderr } = await impact("--last", "1h");
  assert.deepEqual([code, stderr], [0, ""]);
  assert.equal(
    stdout,
    [
      "Of ≈ 32 requests (6 samples) since 2026-11-28T11:30:00.000Z",
      "≈ 12 are refused with 403 by authorization on the route shop/admin (37.5 %, 2 samples)",
      "       GET shop.example/admin",
      "       GET shop.example/admin",
      "≈ 20 do not change (62.5 %, 4 samples)",
      "",
    ].join("\n"),
  );
  assert.deepEqual(asked, Array(2).fill("POST /impact?last=1h&name=…"));
  assert.equal((await impact("--fail-on", "refused")).code, 1);
});

test("what the other pods say is shown if one fails, and the command fails, because it is not the whole impact", async (t) => {
  const { impact } = await cluster(t, {
    "web-a": answer(refusing(5, "2026-11-28T12:00:00.000Z")),
    "web-b": (response) => response.writeHead(503).end("another configuration is being compared; try again\n"),
  });
  const { code, stdout, stderr } = await impact();
  assert.equal(code, 1);
  assert.match(stdout, /^Of ≈ 15 requests/);
  assert.match(stderr, /failed to execute command on web-b\.shop: .*503\nWhy: another configuration is being compared/);
});

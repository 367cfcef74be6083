import assert from "node:assert/strict";
import { test } from "node:test";
import type { ConfigStatus } from "../../../src/admin/plane/config-status.ts";
import { GatewayProcess } from "../../helpers/gateway.ts";

const SECRET = "hunter2-secret";

function config(maxRefused: string | undefined, policies: object, name = "all"): object {
  const reload = maxRefused === undefined ? {} : { reload: { impact: { maxRefused } } };
  const directResponse = { status: 200, body: name };
  const routes = [
    { name: "admin", matches: [{ path: { pathPrefix: "/admin" } }], policies: { directResponse, ...policies } },
    { name, policies: { directResponse } },
  ];
  return { config: { workerThreads: 1, ...reload }, binds: [{ port: 0, listeners: [{ routes }] }] };
}

const DENY = { authorization: { rules: [{ deny: "true" }] } };

async function status(gateway: GatewayProcess): Promise<ConfigStatus> {
  return (await (await fetch(`${gateway.url("admin")}/config/status`)).json()) as ConfigStatus;
}

async function get(gateway: GatewayProcess, path: string): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${gateway.port()}${path}`, { headers: { "x-api-key": SECRET } });
  return `${response.status} ${await response.text()}`;
}

test("a change that would refuse too many of the sampled requests does not take effect; it may raise its own limit", async () => {
  await using gateway = await GatewayProcess.start(config("25%", {}));
  for (const path of ["/cart", "/admin/a", `/admin/b?api_key=${SECRET}`])
    assert.equal(await get(gateway, path), "200 all");

  assert.equal(await gateway.reconfigure(config("25%", DENY, "first")), "rejected");
  assert.equal(await get(gateway, "/cart"), "200 all");
  const { lastError, synchronized, generation, nextRetryAt } = await status(gateway);
  assert.deepEqual([synchronized, generation], [false, 1]);
  assert.ok(nextRetryAt !== null, "the samples may say otherwise later");
  const message = lastError?.message ?? "";
  assert.match(
    message,
    /^it would refuse 66\.7% of the sampled requests, and config\.reload\.impact\.maxRefused allows 25%; to apply it all the same, raise that limit in it\nOf 3 requests \(3 samples\)\n/,
  );
  assert.match(message, /2 are refused with 403 by authorization at \S+:\d+ on the route default\/admin /);
  assert.match(message, /GET 127\.0\.0\.1:\d+\/admin\/a\n/);
  assert.ok(gateway.lines.some((line) => String(line.message).includes("would refuse 66.7%")));

  // Without a limit of its own, that of the configuration in effect counts.
  assert.equal(await gateway.reconfigure(config(undefined, DENY, "second")), "rejected");
  assert.equal(await gateway.reconfigure(config("25%", {}, "harmless")), "applied");
  assert.equal(await get(gateway, "/cart"), "200 harmless");
  assert.equal(await gateway.reconfigure(config("100%", DENY, "forced")), "applied");
  assert.match(await get(gateway, "/admin/a"), /^403/);
  assert.equal((await status(gateway)).synchronized, true);
  assert.ok(!JSON.stringify([message, gateway.lines]).includes(SECRET));
});

test("a rejected change takes effect once most of the requests are others", async () => {
  await using gateway = await GatewayProcess.start(config("30%", {}));
  for (const path of ["/admin/a", "/cart"]) await get(gateway, path);
  assert.equal(await gateway.reconfigure(config("30%", DENY, "later")), "rejected");
  for (let i = 0; i < 4; i++) await get(gateway, "/cart");
  await gateway.until(
    () => gateway.lines.some((line) => line.message === "configuration reloaded"),
    "the next attempt",
  );
  assert.equal(await get(gateway, "/cart"), "200 later");
  const failures = gateway.lines.filter((line) => String(line.message).startsWith("Failed to reload"));
  assert.equal(failures.length, 1);
});

test("a limit is a percentage, and needs samples", async () => {
  await using gateway = await GatewayProcess.start(config("1%", {}));
  const wrong = async (reload: object, recorder: object = {}): Promise<string> => {
    assert.equal(await gateway.reconfigure({ ...config("1%", {}), config: { reload, recorder } }), "rejected");
    return (await status(gateway)).lastError?.message ?? "";
  };
  assert.match(await wrong({ impact: { maxRefused: "101%" } }), /write a percentage such as 1%, at most 100%/);
  assert.match(await wrong({ impact: { maxRefused: "1%" } }, { samples: 0 }), /config\.recorder\.samples: 0/);
  assert.match(await wrong({ impact: { maxRefused: "1%" } }, { off: true }), /config\.recorder\.off/);
});

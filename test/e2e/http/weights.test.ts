import assert from "node:assert/strict";
import { test } from "node:test";
import { TestGateway } from "../../helpers/gateway.ts";
import { RawUpstream, reply } from "../../helpers/raw-peer.ts";
import { call } from "../trace/support.ts";

const REQUESTS = 400;

/** Number of responses of each backend, by the name in their body. */
async function spread(gateway: TestGateway): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (let sent = 0; sent < REQUESTS; sent++) {
    const { status, body } = await call(gateway.port(), { path: "/" });
    const name = status === 200 ? body.toString() : String(status);
    counts[name] = (counts[name] ?? 0) + 1;
  }
  return counts;
}

test("requests are spread over backends by weight: 1 by default, 0 for none", async () => {
  const names = ["one", "three", "none"];
  await using stack = new AsyncDisposableStack();
  const hosts: string[] = [];
  for (const name of names) {
    const upstream = stack.use(await RawUpstream.answering(() => reply(name)));
    hosts.push(`127.0.0.1:${upstream.port}`);
  }
  const weighted = (...weights: readonly (number | undefined)[]): object => {
    const backends = weights.map((weight, i) => ({ host: hosts[i], ...(weight !== undefined && { weight }) }));
    return { binds: [{ port: 0, listeners: [{ protocol: "HTTP", routes: [{ name: "r", backends }] }] }] };
  };
  await using gateway = await TestGateway.start(weighted(undefined, 3, 0));
  const { one = 0, three = 0, ...others } = await spread(gateway);
  assert.deepEqual(others, {});
  assert.equal(one + three, REQUESTS);
  // 100 are expected, with a standard deviation of 8.7: more than seven of these away is not by chance.
  assert.ok(Math.abs(one - REQUESTS / 4) < 61, String(one));

  assert.equal(await gateway.reconfigure(weighted(0, 0, 1)), "applied");
  assert.deepEqual(await spread(gateway), { none: REQUESTS });

  assert.equal(await gateway.reconfigure(weighted(0, 0, 0)), "applied");
  assert.deepEqual(await spread(gateway), { 500: REQUESTS });
});

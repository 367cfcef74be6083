import assert from "node:assert/strict";
import { test } from "node:test";
import { TestApiServer } from "../../test/helpers/kube/api-server.ts";
import { until } from "../../test/helpers/until.ts";
import { LogOutput } from "../base/log.ts";
import { parseLogFilter } from "../base/log-filter.ts";
import { LeaderElection, type LeaseTimes } from "./leader.ts";

const LEASES = "coordination.k8s.io/v1/leases";
const LEASE = "system/tracegate";
const TIMES: LeaseTimes = { lease: 1000, renewWithin: 300, retryEvery: 20 };
/** So long that a test which waits for the end of a lease fails. A lease has to be given up within `retryEvery`, on slow machines too. */
const NEVER: LeaseTimes = { lease: 60_000, renewWithin: 30_000, retryEvery: 1000 };

interface Replica extends AsyncDisposable {
  readonly election: LeaderElection;
  readonly changes: boolean[];
  stop(): Promise<void>;
}

function join(server: TestApiServer, identity: string, times = TIMES): Replica {
  const changes: boolean[] = [];
  const client = server.client();
  const log = new LogOutput(parseLogFilter("off"), "text", () => {}).logger("default");
  const onChange = (leading: boolean): unknown => changes.push(leading);
  const election = new LeaderElection({
    client,
    namespace: "system",
    name: "tracegate",
    identity,
    log,
    onChange,
    times,
  });
  const stopping = new AbortController();
  const ended = election.run(stopping.signal);
  const stop = async (): Promise<void> => {
    stopping.abort();
    await ended;
    client.close();
  };
  return { election, changes, stop, [Symbol.asyncDispose]: stop };
}

function spec(server: TestApiServer): { holderIdentity?: string; leaseTransitions?: number; renewTime?: string } {
  return (server.store.get(LEASES, LEASE)?.spec ?? {}) as ReturnType<typeof spec>;
}

test("one replica leads and renews its lease; another takes it at once when it is released", async () => {
  await using server = await TestApiServer.start();
  await using one = join(server, "one", NEVER);
  await until(() => one.election.leading);
  await using two = join(server, "two", NEVER);
  const { renewTime } = spec(server);
  await until(() => spec(server).renewTime !== renewTime);
  assert.equal(spec(server).holderIdentity, "one");
  assert.equal(two.election.leading, false);
  await one.stop();
  assert.deepEqual(one.changes, [true, false]);
  await until(() => two.election.leading);
  assert.equal(spec(server).leaseTransitions, 1);
  await two.stop();
  assert.equal(spec(server).holderIdentity, "");
});

test("a lease that is not renewed is taken when it has expired, not before", async () => {
  await using server = await TestApiServer.start();
  const made = { holderIdentity: "dead", leaseDurationSeconds: 1, renewTime: "2020-01-01T00:00:00.000000Z" };
  server.store.put(LEASES, LEASE, {
    apiVersion: "coordination.k8s.io/v1",
    kind: "Lease",
    metadata: { namespace: "system", name: "tracegate" },
    spec: made,
  });
  const startedAt = performance.now();
  await using one = join(server, "one");
  await until(() => one.election.leading);
  // The clock of the replica that died may be wrong: only what was seen here counts.
  assert.ok(performance.now() - startedAt >= 1000);
});

test("a leader that cannot renew stops writing before others may begin", async () => {
  await using server = await TestApiServer.start();
  await using one = join(server, "one");
  await until(() => one.election.leading);
  const blocked = Promise.withResolvers<void>();
  server.intercept = () => blocked.promise;
  await until(() => !one.election.leading);
  assert.deepEqual(one.changes, [true, false]);
  server.intercept = undefined;
  blocked.resolve();
  await until(() => one.election.leading);
});

test("a leader whose lease was taken follows", async () => {
  await using server = await TestApiServer.start();
  await using one = join(server, "one");
  await until(() => one.election.leading);
  const lease = server.store.get(LEASES, LEASE) ?? assert.fail();
  server.store.put(LEASES, LEASE, {
    ...lease,
    spec: { holderIdentity: "two", leaseDurationSeconds: 60, renewTime: "2020-01-01T00:00:00.000000Z" },
  });
  await until(() => !one.election.leading);
  await one.stop();
  assert.equal(spec(server).holderIdentity, "two");
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { closedPort, RawUpstream, reply } from "../../../test/helpers/raw-peer.ts";
import { GatewayError } from "../../base/errors.ts";
import { Sweeper } from "../../base/sweeper.ts";
import { STANDARD_ENVIRONMENT } from "../../cel/index.ts";
import type { ResponseHead } from "../../http/h1/parse-head.ts";
import { requestHeadText } from "../../http/h1/serialize.ts";
import { requestStart } from "../../http/h2/fields.ts";
import type { Latin1 } from "../../http/message/message.ts";
import { UNKNOWN_LENGTH } from "../../http/stream.ts";
import { ANYWHERE } from "../../net/testing/egress.ts";
import { type Balancer, BucketBalancer } from "../balancers/balancer.ts";
import type { UpstreamConnection } from "../connections/connection.ts";
import type { Endpoint } from "../endpoints/endpoint.ts";
import { BackendCalls, Endpoints } from "../endpoints/endpoints.ts";
import type { UpstreamSession } from "../h2/session.ts";
import { SharedLoads } from "../loads/shared-loads.ts";
import { Pools } from "../pools/pools.ts";
import { Resolver } from "../resolve/resolver.ts";
import type { ConnectionSettings } from "../settings/pool-target.ts";
import type { Health } from "../settings/settings.ts";
import { OutlierDetector } from "./outlier.ts";
import { type CallFailure, type CallProtocol, UpstreamCall, type UpstreamCaller } from "./upstream-call.ts";

/** The endpoint at a port of 127.0.0.1, with a new pool; closed at the end of its block. */
function endpointAt(port: number, how: ConnectionSettings = {}, loads?: SharedLoads) {
  const sweeper = new Sweeper();
  const settings = { connectTimeout: 10_000, idleTimeout: 90_000, maxIdle: undefined, keepAliveDelay: 0 };
  const endpoints = new Endpoints(
    new Pools(settings, new Resolver("All", ANYWHERE), { onConnected: () => {} }, sweeper),
    undefined,
    undefined,
    loads,
  );
  const endpoint = endpoints.acquire({ host: "127.0.0.1", port, ...how }, 1);
  return {
    endpoint,
    [Symbol.dispose]: () => {
      endpoints.release([endpoint]);
      sweeper.close();
    },
  };
}

/** A caller that sends a request and records its events. */
class Caller implements UpstreamCaller {
  readonly calls = new BackendCalls();
  readonly call: UpstreamCall;
  readonly events: string[] = [];
  readonly ended = Promise.withResolvers<void>();
  readonly connected = Promise.withResolvers<UpstreamConnection>();
  method = "GET";
  replayable = true;
  requestSent = true;
  loop: Latin1 | undefined;
  protocol: CallProtocol = "http1";
  length = 0;
  balancer: Balancer | undefined;
  failed: Set<Endpoint> | undefined;
  #status = 0;
  readonly #endpoints: readonly Endpoint[];

  /** The first send goes to the first endpoint, a replay to the next. */
  constructor(endpoints: readonly Endpoint[], health?: Health) {
    this.#endpoints = endpoints;
    this.call = new UpstreamCall(this, {
      calls: this.calls,
      outliers: health && new OutlierDetector(health, STANDARD_ENVIRONMENT),
    });
  }

  /** The events, once the last one has arrived. */
  async outcome(timeoutMs = 0, covers?: "head" | "response"): Promise<string[]> {
    if (!this.call.start(timeoutMs, covers)) return ["nothing to call"];
    await this.ended.promise;
    return this.events;
  }

  chooseEndpoint(): Endpoint | undefined {
    return this.balancer?.choose(undefined, this.failed) ?? this.#endpoints[this.calls.total];
  }

  prepare({ pool }: Endpoint): CallProtocol {
    this.events.push(`to ${pool.name === this.#endpoints[0]?.pool.name ? "first" : "second"}`);
    return this.protocol;
  }

  onConnection(connection: UpstreamConnection, call: UpstreamCall): void {
    if (this.protocol === "http1") {
      const end = this.length === UNKNOWN_LENGTH ? "transfer-encoding: chunked\r\n\r\n" : "\r\n";
      call.sendHead(connection, requestHeadText(this.method, "/", "a", [], null, end), this.length, false);
      if (this.length !== 0) connection.flush();
    }
    this.connected.resolve(connection);
  }

  onSession(session: UpstreamSession, call: UpstreamCall): void {
    const request = { method: this.method, authority: "a", path: "/", search: "" };
    call.openStream(session, requestStart(request, "http", false, ""), [], this.length);
  }

  onInformational(): void {}

  onResponse(head: ResponseHead): void {
    this.#status = head.status;
    const { status, headers } = head;
    this.call.classify({ variablesWith: (response) => ({ response }) }, { status, headers });
  }

  onResponseBody(): void {}
  onResponseBatch(): void {}
  onUpstreamDrain(): void {}

  onResponseEnd(): void {
    this.#finish(`status ${this.#status}`);
  }

  onSendFailed(): void {
    this.events.push("send failed");
  }

  onEvicted(): void {
    this.events.push("evicted");
  }

  onCallFailure({ code, sent, timedOut }: CallFailure): void {
    this.#finish(`${code}${sent ? " sent" : ""}${timedOut ? " timed out" : ""}`);
  }

  onTunnelClosed(): void {}

  onUpstreamFault(error: unknown): void {
    this.#finish(`fault ${error}`);
  }

  #finish(event: string): void {
    this.events.push(event);
    this.ended.resolve();
  }
}

/** What the balancer knows of an endpoint. */
function known({ health, pending, total, evictedUntil }: Endpoint): unknown {
  return { health, pending, total, evicted: evictedUntil > 0 };
}

const HEALTHY = { health: 1, pending: 0, total: 1, evicted: false };
const FAILED = { health: 0.7, pending: 0, total: 1, evicted: false };

/** Responds to the first request of each connection, and closes the connection at the second: a stale one. */
function staleAfterOne(): Promise<RawUpstream> {
  return RawUpstream.listen(async (peer) => {
    await peer.message();
    peer.send(reply("answered"));
    await peer.message();
    peer.socket.destroy();
  });
}

test("a response: the endpoint has the outcome before the caller has the end", async () => {
  await using upstream = await RawUpstream.answering(() => reply("ok"));
  using first = endpointAt(upstream.port);
  const caller = new Caller([first.endpoint]);
  caller.onResponseEnd = () => {
    assert.deepEqual(known(first.endpoint), HEALTHY);
    caller.ended.resolve();
  };
  await caller.outcome();
  assert.ok(first.endpoint.latency > 0);
  assert.equal(caller.calls.total, 1);
  assert.equal(caller.call.upstream, undefined);
});

test("another worker takes the last place after the choice: the call goes to the other endpoint, else it is refused", async () => {
  await using upstream = await RawUpstream.answering(() => reply("ok"));
  await using spare = await RawUpstream.answering(() => reply("ok"));
  const limits = { maxRequests: 1 };
  const memory = SharedLoads.memoryFor(2);
  using first = endpointAt(upstream.port, { limits }, new SharedLoads(memory, 0));
  using second = endpointAt(spare.port, {}, new SharedLoads(memory, 0));
  const theirs = new SharedLoads(memory, 1).claim(first.endpoint.key);
  const caller = new Caller([first.endpoint]);
  caller.balancer = new BucketBalancer(
    [[[first.endpoint, second.endpoint]]],
    ({ endpoints: [picked] }) => picked as Endpoint,
  );
  const { chooseEndpoint } = caller;
  let choices = 0;
  caller.chooseEndpoint = () => {
    const chosen = chooseEndpoint.call(caller);
    if (choices++ === 0) theirs?.add(1);
    return chosen;
  };
  assert.deepEqual(await caller.outcome(), ["to second", "status 200"]);
  assert.equal(choices, 2);
  assert.deepEqual(known(first.endpoint), { ...HEALTHY, total: 0 });

  const alone = new Caller([first.endpoint]);
  assert.deepEqual(await alone.outcome(), ["to first", "send failed", "TG_POOL_FULL"]);
  assert.deepEqual([first.endpoint.overflows, first.endpoint.load], [1, 1]);
});

test("a request that cannot be sent to the endpoint leaves no trace there", () => {
  using first = endpointAt(1, { limits: { maxRequests: 1 } });
  const caller = new Caller([first.endpoint]);
  caller.prepare = () => {
    throw new GatewayError("TG_UPGRADE_MISMATCH");
  };
  assert.throws(() => caller.call.start(), GatewayError);
  assert.deepEqual(known(first.endpoint), { ...HEALTHY, total: 0 });
});

test("without rules a status of 5xx is a failure, and nothing is evicted", async () => {
  await using upstream = await RawUpstream.answering(() => reply("", [], "503 Busy"));
  using first = endpointAt(upstream.port);
  assert.deepEqual(await new Caller([first.endpoint]).outcome(), ["to first", "status 503"]);
  assert.deepEqual(known(first.endpoint), FAILED);
});

test("rules decide what a failure is, and the caller learns of an eviction before the end", async () => {
  await using upstream = await RawUpstream.answering(() => reply("", [], "404 No"));
  using first = endpointAt(upstream.port);
  const caller = new Caller([first.endpoint], { unhealthyExpression: "response.code == 404", eviction: {} });
  assert.deepEqual(await caller.outcome(), ["to first", "evicted", "status 404"]);
  assert.deepEqual(known(first.endpoint), { ...FAILED, evicted: true });
});

test("a connection that cannot be opened is a failure of the endpoint, and nothing was sent", async () => {
  using first = endpointAt(await closedPort());
  assert.deepEqual(await new Caller([first.endpoint]).outcome(), ["to first", "send failed", "TG_UPSTREAM_FAILED"]);
  assert.deepEqual(known(first.endpoint), FAILED);
});

/** Chooses the first endpoint that has not failed. */
function inOrder(...endpoints: readonly Endpoint[]): Balancer {
  return new BucketBalancer(
    endpoints.map((endpoint) => [[endpoint]]),
    ({ endpoints: [first] }) => first as Endpoint,
  );
}

/** Two endpoints: `holder` has the only connection of the first, whose server does not respond; the second responds. */
async function oneBusy(opened: AsyncDisposableStack) {
  const busy = opened.use(await RawUpstream.listen());
  const other = opened.use(await RawUpstream.answering(() => reply("ok")));
  const { endpoint: first } = opened.use(endpointAt(busy.port, { limits: { maxConnections: 1 } }));
  const { endpoint: second } = opened.use(endpointAt(other.port));
  const holder = new Caller([first]);
  holder.call.start();
  return { port: busy.port, first, second, holder };
}

test("a call leaves an endpoint that is removed while it waits for a connection, and this does not count as a failure of the endpoint", async () => {
  await using opened = new AsyncDisposableStack();
  const { first, second, holder } = await oneBusy(opened);
  const caller = new Caller([]);
  caller.method = "POST";
  caller.balancer = inOrder(first, second);
  const outcome = caller.outcome();
  first.remove();
  assert.equal((await outcome).at(-1), "status 200");
  assert.deepEqual(known(first), { ...HEALTHY, pending: 1, total: 2 });
  assert.deepEqual(known(second), HEALTHY);
  holder.call.abandon({ countFailure: false });
});

test("a call keeps its place in the queue of a full pool, but does not wait long for a connection to be opened", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  await using opened = new AsyncDisposableStack();
  const { port, first, second, holder } = await oneBusy(opened);
  await holder.connected.promise;
  const queued = new Caller([]);
  queued.balancer = inOrder(first, second);
  queued.call.start();
  t.mock.timers.tick(1000);
  assert.deepEqual(known(second), { ...HEALTHY, total: 0 });
  for (const { call } of [queued, holder]) call.abandon({ countFailure: false });

  using slow = endpointAt(port);
  const opening = new Caller([]);
  opening.balancer = inOrder(slow.endpoint, second);
  const outcome = opening.outcome();
  t.mock.timers.tick(1000);
  assert.equal((await outcome).at(-1), "status 200");
  assert.equal(second.total, 1);
});

test("a call that waits in vain in the queue of a full pool fails there, and this does not count as a failure of the endpoint", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  for (const [timeoutMs, expected] of [
    [0, "TG_UPSTREAM_TIMEOUT"],
    [5000, "TG_UPSTREAM_TIMEOUT timed out"],
  ] as const) {
    await using opened = new AsyncDisposableStack();
    const { first, second, holder } = await oneBusy(opened);
    await holder.connected.promise;
    const queued = new Caller([]);
    queued.balancer = inOrder(first, second);
    const outcome = queued.outcome(timeoutMs);
    t.mock.timers.tick(timeoutMs || 10_000);
    assert.equal((await outcome).at(-1), expected);
    assert.deepEqual(known(first), { ...HEALTHY, pending: 1, total: 2 });
    assert.deepEqual(known(second), { ...HEALTHY, total: 0 });
    holder.call.abandon({ countFailure: false });
  }
});

test("a pool that is full of attempts to connect is a failure of the endpoint, and calls move on", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  await using opened = new AsyncDisposableStack();
  const { first, second, holder } = await oneBusy(opened);
  const queued = new Caller([]);
  queued.balancer = inOrder(first, second);
  const outcome = queued.outcome();
  t.mock.timers.tick(1000);
  assert.equal((await outcome).at(-1), "status 200");
  assert.equal(first.health, 0.7);
  holder.call.abandon({ countFailure: false });
});

test("a server that does not accept HTTP/2 in time is a failure of the endpoint", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  await using upstream = await RawUpstream.listen();
  using first = endpointAt(upstream.port, { version: "HTTP/2.0" });
  const caller = new Caller([first.endpoint]);
  caller.protocol = "http2";
  const outcome = caller.outcome();
  t.mock.timers.tick(10_000);
  assert.deepEqual(await outcome, ["to first", "send failed", "TG_UPSTREAM_TIMEOUT"]);
  assert.deepEqual(known(first.endpoint), FAILED);
});

test("a full pool is not a failure of the endpoint", async () => {
  await using upstream = await RawUpstream.listen();
  using first = endpointAt(upstream.port, { limits: { maxConnections: 1, maxPendingRequests: 0 } });
  const busy = new Caller([first.endpoint]);
  busy.call.start();
  assert.deepEqual(await new Caller([first.endpoint]).outcome(), ["to first", "send failed", "TG_POOL_FULL"]);
  assert.deepEqual(known(first.endpoint), { ...HEALTHY, pending: 1, total: 2 });
  busy.call.abandon({ countFailure: false });
  assert.deepEqual(known(first.endpoint), { ...HEALTHY, total: 2 });
});

test("a stale connection: an idempotent request is replayed, to a newly chosen endpoint", async () => {
  await using stale = await staleAfterOne();
  await using other = await RawUpstream.answering(() => reply("ok"));
  using first = endpointAt(stale.port);
  using second = endpointAt(other.port);
  await new Caller([first.endpoint]).outcome();
  const caller = new Caller([first.endpoint, second.endpoint]);
  assert.deepEqual(await caller.outcome(), ["to first", "send failed", "to second", "status 200"]);
  assert.equal(caller.calls.total, 2);
  assert.deepEqual(known(first.endpoint), { ...HEALTHY, total: 2 }, "its connection was idle for too long, no more");
  assert.deepEqual(known(second.endpoint), HEALTHY);
});

for (const [why, method, replayable] of [
  ["a method that is not idempotent", "POST", true],
  ["a request that is no longer available", "GET", false],
] as const)
  test(`a stale connection: ${why} is not replayed`, async () => {
    await using stale = await staleAfterOne();
    using first = endpointAt(stale.port);
    await new Caller([first.endpoint]).outcome();
    const caller = new Caller([first.endpoint, first.endpoint]);
    caller.method = method;
    caller.replayable = replayable;
    assert.deepEqual(await caller.outcome(), ["to first", "send failed", "TG_UPSTREAM_FAILED sent"]);
    assert.deepEqual(known(first.endpoint), { ...FAILED, total: 2 });
  });

test("a replay without an endpoint leaves the failure as it is", async () => {
  await using stale = await staleAfterOne();
  using first = endpointAt(stale.port);
  await new Caller([first.endpoint]).outcome();
  assert.deepEqual(await new Caller([first.endpoint]).outcome(), [
    "to first",
    "send failed",
    "TG_UPSTREAM_FAILED sent",
  ]);
});

test("without an endpoint there is nothing to call", async () => {
  assert.deepEqual(await new Caller([]).outcome(), ["nothing to call"]);
});

test("a timeout counts as a failure, unless the request is still on its way from the client", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  for (const [requestSent, outcome] of [
    [true, FAILED],
    [false, HEALTHY],
  ] as const) {
    await using upstream = await RawUpstream.listen();
    using first = endpointAt(upstream.port);
    const caller = new Caller([first.endpoint]);
    caller.requestSent = requestSent;
    caller.length = UNKNOWN_LENGTH;
    const events = caller.outcome(1000);
    await caller.connected.promise;
    t.mock.timers.tick(1000);
    assert.deepEqual(await events, ["to first", "TG_UPSTREAM_TIMEOUT sent timed out"]);
    assert.deepEqual(known(first.endpoint), outcome);
  }
});

test("a timeout while the call waits for a connection: nothing was sent, and it counts, however slow the client is", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  await using upstream = await RawUpstream.listen();
  using first = endpointAt(upstream.port, { limits: { maxConnections: 1 } });
  const busy = new Caller([first.endpoint]);
  busy.call.start();
  const queued = new Caller([first.endpoint]);
  queued.requestSent = false;
  const events = queued.outcome(1000);
  t.mock.timers.tick(1000);
  assert.deepEqual(await events, ["to first", "TG_UPSTREAM_TIMEOUT timed out"]);
  assert.equal(first.endpoint.health, 0.7);
  busy.call.abandon({ countFailure: false });
});

test("a call that its caller gives up on an open connection, while it starts, has no timeout", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  await using upstream = await RawUpstream.answering(() => reply("ok"));
  using first = endpointAt(upstream.port);
  await new Caller([first.endpoint]).outcome();
  const caller = new Caller([first.endpoint]);
  caller.onConnection = (_connection, call) => call.abandon({ countFailure: false });
  assert.equal(caller.call.start(1000), true);
  t.mock.timers.tick(1000);
  assert.deepEqual(caller.events, ["to first"]);
});

for (const [covers, last] of [
  ["head", "status 200"],
  ["response", "TG_UPSTREAM_TIMEOUT sent timed out"],
] as const)
  test(`a timeout that covers the ${covers} of a response`, async (t) => {
    t.mock.timers.enable({ apis: ["setTimeout"] });
    const late = Promise.withResolvers<void>();
    await using upstream = await RawUpstream.listen(async (peer) => {
      await peer.message();
      peer.send("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n");
      await late.promise;
      peer.send("ok");
    });
    using first = endpointAt(upstream.port);
    const caller = new Caller([first.endpoint]);
    caller.onResponseBatch = () => {
      t.mock.timers.tick(1000);
      late.resolve();
    };
    assert.equal((await caller.outcome(1000, covers)).at(-1), last);
  });

test("an abandoned call is closed at the upstream, and no event follows", async () => {
  await using upstream = await RawUpstream.listen();
  using first = endpointAt(upstream.port);
  const caller = new Caller([first.endpoint]);
  caller.call.start();
  const peer = await upstream.connection();
  await peer.message();
  caller.call.abandon({ countFailure: false });
  await peer.closed();
  assert.deepEqual(caller.events, ["to first"]);
  assert.deepEqual(known(first.endpoint), HEALTHY);
});

test("a discarded response counts by its head", async () => {
  await using upstream = await RawUpstream.listen(async (peer) => {
    await peer.message();
    peer.send("HTTP/1.1 500 No\r\ncontent-length: 2\r\n\r\n");
  });
  using first = endpointAt(upstream.port);
  const caller = new Caller([first.endpoint]);
  caller.onResponse = () => {
    caller.call.discard();
    caller.ended.resolve();
  };
  await caller.outcome();
  assert.deepEqual(known(first.endpoint), FAILED);
  await (await upstream.connection()).closed();
});

test("a tunnel is open in both directions until the caller settles it", async () => {
  await using upstream = await RawUpstream.listen(async (peer) => {
    peer.socket.end("bye");
  });
  using first = endpointAt(upstream.port);
  const caller = new Caller([first.endpoint]);
  caller.protocol = "raw";
  caller.onResponseEnd = () => caller.ended.resolve();
  await caller.outcome();
  assert.deepEqual(known(first.endpoint), { ...HEALTHY, pending: 1 });
  caller.call.upstream?.sendEnd([]);
  caller.call.settle();
  assert.deepEqual(known(first.endpoint), HEALTHY);
  // What the connection reports after that has no effect.
  caller.onTunnelClosed = () => caller.events.push("tunnel closed");
  caller.call.onTunnelClosed();
  caller.call.onUpstreamFailure("reset", true);
  assert.deepEqual(caller.events, ["to first"]);
});

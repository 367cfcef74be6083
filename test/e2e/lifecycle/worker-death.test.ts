import assert from "node:assert/strict";
import { once } from "node:events";
import { after, before, suite, test } from "node:test";
import type { MetricsSnapshot } from "../../../src/telemetry/metrics.ts";
import type { TraceEvent } from "../../../src/trace/events.ts";
import type { Supervisor } from "../../../src/worker/supervisor.ts";
import { proxyTo } from "../../helpers/gateway.ts";
import { H2Client } from "../../helpers/h2-client.ts";
import { RawPeer } from "../../helpers/raw-peer.ts";
import { answering, irOf, TestSupervisor } from "../../helpers/supervisor.ts";
import { until } from "../../helpers/until.ts";
import { Upstream } from "../trace/support.ts";

const GET = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: a.test\r\n\r\n`;

/** A reader of a trace that accepts every event. */
class Collector {
  readonly events: TraceEvent[] = [];
  readonly ended: Promise<void>;
  onDrain: (() => void) | undefined;
  #end: () => void = () => {};
  #waiting: { readonly type: string; readonly resolve: () => void } | undefined;

  constructor() {
    this.ended = new Promise((resolve) => {
      this.#end = resolve;
    });
  }

  event(json: string): boolean {
    const event = JSON.parse(json) as TraceEvent;
    this.events.push(event);
    if (event.message.type === this.#waiting?.type) this.#waiting.resolve();
    return true;
  }

  end(): void {
    this.#end();
  }

  /** Resolves with the next event of a type. */
  next(type: string): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting = { type, resolve };
    });
  }
}

suite("a worker dies", () => {
  let upstream: Upstream;
  let workers: TestSupervisor;
  let supervisor: Supervisor;

  before(async () => {
    upstream = await Upstream.start();
    workers = new TestSupervisor(2);
    supervisor = workers.supervisor;
    await supervisor.apply(1, irOf(proxyTo(upstream.address)));
  });
  after(async () => {
    await workers[Symbol.asyncDispose]();
    await upstream.close();
  });

  test("connections of other workers continue, its traces end with an error, its counts stay, and it is replaced", async () => {
    const victims = await workers.clientOf("worker-0");
    const others = await workers.clientOf("worker-1");
    const counted = requests(supervisor.metrics());
    assert.ok(counted > 0);

    const dying = new Collector();
    await supervisor.hub.open({ reveal: false, maxBodyBytes: 0, filter: { functions: "" } }, dying);
    const hanging = upstream.hang("/hang");
    const calling = dying.next("backendCallStart");
    victims.write(GET("/hang"));
    await Promise.all([hanging, calling]);
    const waiting = new Collector();
    const filter = { expression: 'request.path == "/later"', functions: "" };
    await supervisor.hub.open({ reveal: false, maxBodyBytes: 0, filter }, waiting);

    let busy = true;
    const serving = (async () => {
      let answers = 0;
      while (busy) {
        others.write(GET("/other"));
        const [answer] = (await once(others, "data", { signal: AbortSignal.timeout(30_000) })) as [Buffer];
        assert.match(answer.toString(), /^HTTP\/1\.1 200 .*hello$/s);
        answers++;
      }
      return answers;
    })();
    const died = workers.death();
    const cut = once(victims, "close");
    await workers.end("worker-0");
    await Promise.all([died, cut, dying.ended]);
    assert.deepEqual(workers.deaths, ["worker-0"]);
    const last = dying.events.at(-1);
    assert.equal(last?.severity, "error");
    assert.deepEqual(last?.message, {
      type: "requestFinished",
      status: null,
      error: "the worker that served the request has died",
    });
    assert.ok(requests(supervisor.metrics()) >= counted, "what it had counted is kept");
    assert.ok(inFlight(supervisor.metrics()) <= 1, "its request is no longer in progress, that of the other may be");

    const replacement = await workers.clientOf("worker-0");
    busy = false;
    assert.ok((await serving) > 0);
    assert.equal(others.destroyed, false);

    assert.equal(waiting.events.length, 0);
    replacement.write(GET("/later"));
    await waiting.ended;
    const types = waiting.events.map(({ message }) => message.type);
    assert.equal(types[0], "requestStarted");
    assert.equal(types.at(-1), "requestFinished");
    assert.ok(requests(supervisor.metrics()) > counted);

    const again = new Collector();
    await supervisor.hub.open({ reveal: false, maxBodyBytes: 0, filter: { functions: "" } }, again);
    others.write(GET("/any"));
    await again.ended;
    assert.equal(again.events.filter(({ message }) => message.type === "requestStarted").length, 1);
    for (const socket of [replacement, others]) socket.destroy();
  });

  test("the counts of a worker that has died include every request that it served", async () => {
    const before = requests(supervisor.metrics());
    const client = await workers.clientOf("worker-1");
    let answered = requests(supervisor.metrics()) - before;
    const died = workers.death();
    let alive = true;
    client.on("close", () => {
      alive = false;
    });
    const counts: number[] = [];
    for (let i = 0; i < 200; i++) {
      client.write(GET(`/counted/${i}`));
      await once(client, "data");
      answered++;
    }
    // The last response is sent before it is counted.
    while (requests(supervisor.metrics()) < before + answered) await new Promise((resolve) => setImmediate(resolve));
    const ending = workers.end("worker-1");
    while (alive) {
      counts.push(requests(supervisor.metrics()));
      await new Promise((resolve) => setImmediate(resolve));
    }
    await Promise.all([died, ending]);
    counts.push(requests(supervisor.metrics()));
    (await workers.clientOf("worker-1")).destroy();
    counts.push(requests(supervisor.metrics()));
    assert.ok((counts.at(-2) ?? 0) >= before + answered, `${counts.at(-2)} of ${before} + ${answered}`);
    let shown = 0;
    supervisor.eachRequestSeries((_, { durations }) => {
      shown += durations.reduce((sum, count) => sum + count, 0);
    });
    assert.equal(shown, requests(supervisor.metrics()));
    await until(() => supervisor.states.every(({ state, generation }) => state === "serving" && generation === 1));
    assert.ok((supervisor.states[1]?.deaths ?? 0) > 0);
    assert.deepEqual(
      counts,
      counts.toSorted((a, b) => a - b),
    );
  });

  test("under load, requests on the other worker all succeed, and each client of the dead one loses at most one", async () => {
    const clients = await Promise.all(Array.from({ length: 24 }, () => LoadedClient.connect(workers.port)));
    const tasks = JSON.stringify((await supervisor.tasks())["worker-1"]);
    const [other, doomed] = [true, false].map((on) =>
      clients.filter((client) => tasks.includes(`:${client.port}"`) === on),
    ) as [LoadedClient[], LoadedClient[]];
    assert.ok(other.length > 0 && doomed.length > 0, "both workers have clients");
    const running = clients.map((client) => client.run());
    await until(() => clients.every(({ answered }) => answered >= 5));
    const died = workers.death();
    await Promise.all([workers.end("worker-0"), died]);
    const before = other.map(({ answered }) => answered);
    await until(() => other.every(({ answered }, i) => answered >= (before[i] ?? 0) + 5));
    // Those of the dead worker have come back on other connections.
    await until(() => doomed.every(({ reconnects, answeredSince }) => reconnects > 0 && answeredSince >= 5));
    for (const client of clients) client.stopped = true;
    await Promise.all(running);
    assert.deepEqual(new Set(other.map(({ lost }) => lost)), new Set([0]));
    assert.ok(doomed.every(({ lost }) => lost <= 1));
  });

  test("HTTP/2 streams on the other worker continue, those of the dead one end with their connection, new ones succeed", async () => {
    (await workers.clientOf("worker-0")).destroy();
    const clients = await Promise.all(Array.from({ length: 16 }, () => streamingClient(workers.port)));
    const tasks = JSON.stringify((await supervisor.tasks())["worker-0"]);
    const [doomed, other] = [true, false].map((on) =>
      clients.filter(({ peer }) => tasks.includes(`:${peer.socket.localPort}"`) === on),
    ) as [H2Client[], H2Client[]];
    assert.ok(other.length > 0 && doomed.length > 0, "both workers have clients");
    const died = workers.death();
    await Promise.all([workers.end("worker-0"), died]);
    for (const client of doomed) {
      await client.closed();
      assert.equal(client.stream(BEGUN).ended, false);
    }
    // The replacement does not listen yet, or does: connections reach a worker that serves them.
    for (let i = 0; i < 8; i++) {
      const client = await H2Client.connect(workers.port);
      client.request(1, "GET", [], "/new");
      assert.equal((await client.response(1)).body, "hello");
      client.peer.socket.destroy();
    }
    for (const client of other) {
      client.data(BEGUN, " world");
      assert.equal((await client.response(BEGUN)).body, "hello");
      client.request(LATER, "GET", [], "/later");
      assert.equal((await client.response(LATER)).body, "hello");
      assert.deepEqual(client.goAways, []);
      client.peer.socket.destroy();
    }
    (await workers.clientOf("worker-0")).destroy();
  });

  test("a configuration that arrives while a worker is missing reaches its replacement", async () => {
    const died = workers.death();
    await workers.end("worker-1");
    await died;
    await supervisor.apply(2, answering("second"));
    for (const worker of ["worker-0", "worker-1"]) {
      const client = await workers.clientOf(worker);
      client.write(GET("/x"));
      const [answer] = (await once(client, "data")) as [Buffer];
      assert.match(answer.toString(), /second$/);
      client.destroy();
    }
  });

  test("a worker that dies while it builds a configuration does not cause its rejection", async () => {
    const routes = Array.from({ length: 5000 }, (_, i) => ({
      name: `r${i}`,
      matches: [{ path: { exact: `/r${i}` } }],
      policies: { directResponse: { status: 200, body: "third" } },
    }));
    const died = workers.death();
    const victim = workers.thread("worker-0");
    // Its first reply is that to the first of about fifty steps.
    victim.once("message", () => void victim.terminate());
    await Promise.all([supervisor.apply(3, irOf({ binds: [{ port: 0, listeners: [{ routes }] }] })), died]);
    for (const worker of ["worker-0", "worker-1"]) {
      const client = await workers.clientOf(worker);
      client.write(GET("/r4999"));
      const [answer] = (await once(client, "data")) as [Buffer];
      assert.match(answer.toString(), /third$/);
      client.destroy();
    }
  });

  function inFlight(snapshot: MetricsSnapshot): number {
    return (snapshot.requests_in_flight ?? []).reduce((sum, { value }) => sum + Number(value), 0);
  }

  function requests(snapshot: MetricsSnapshot): number {
    return (snapshot.requests_total ?? []).reduce((sum, { value }) => sum + Number(value), 0);
  }
});

/** Ids of streams. */
const FIRST = 1;
const BEGUN = 3;
const LATER = 5;

/** An HTTP/2 connection that has had one response, with a request whose body is being sent. */
async function streamingClient(port: number): Promise<H2Client> {
  const client = await H2Client.connect(port);
  client.request(FIRST, "GET", [], "/first");
  await client.response(FIRST);
  client.request(BEGUN, "POST", [], "/begun");
  client.data(BEGUN, "hello", false);
  await client.settled();
  return client;
}

/** Sends one request after the other on a connection that it keeps; opens another one if that breaks. */
class LoadedClient {
  answered = 0;
  /** On the latest connection. */
  answeredSince = 0;
  /** Requests that were sent and have no response. */
  lost = 0;
  reconnects = 0;
  stopped = false;
  readonly #target: number;
  #peer: RawPeer;

  private constructor(target: number, peer: RawPeer) {
    this.#target = target;
    this.#peer = peer;
  }

  static async connect(target: number): Promise<LoadedClient> {
    const client = new LoadedClient(target, await RawPeer.connect(target));
    // Its worker knows of the connection only once it has read from it.
    await client.#ask();
    return client;
  }

  get port(): number | undefined {
    return this.#peer.socket.localPort;
  }

  async run(): Promise<void> {
    while (!this.stopped) {
      if (await this.#ask()) continue;
      this.lost++;
      for (;;) {
        this.#peer = await RawPeer.connect(this.#target);
        this.answeredSince = 0;
        // A connection in the queue of the dead worker breaks before any worker has accepted it.
        if (await this.#ask()) break;
      }
      this.reconnects++;
    }
    this.#peer.socket.destroy();
  }

  async #ask(): Promise<boolean> {
    try {
      this.#peer.send(GET("/load"));
      const { start } = await this.#peer.message();
      if (!start.startsWith("HTTP/1.1 200")) return false;
      this.answered++;
      this.answeredSince++;
      return true;
    } catch {
      return false;
    }
  }
}

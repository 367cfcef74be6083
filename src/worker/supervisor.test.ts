import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { type TestContext, test } from "node:test";
import { connect as tlsConnect } from "node:tls";
import type { Worker } from "node:worker_threads";
import { noOpenssl, TestCa } from "../../test/helpers/certificates.ts";
import { type RawPeer, RawUpstream, reply, valuesOf } from "../../test/helpers/raw-peer.ts";
import { answering, irOf, TestSupervisor } from "../../test/helpers/supervisor.ts";
import { until } from "../../test/helpers/until.ts";
import { TokenBuckets } from "../policies/token-buckets/buckets.ts";
import { SharedLoads } from "../upstream/loads/shared-loads.ts";
import type { FollowReader } from "./follow-session.ts";
import type { Args, Request } from "./messages.ts";
import { WorkersDied } from "./supervisor.ts";

/** A port that nothing listens on. */
async function freePort(): Promise<AddressInfo> {
  const server = createServer().listen(0);
  await once(server, "listening");
  const address = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return address;
}

const HANG = "GET /hang HTTP/1.1\r\nHost: a.test\r\n\r\n";

async function fetchText(workers: TestSupervisor): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${workers.port}/`, { headers: { connection: "close" } });
  return response.text();
}

test("workers that die before the first configuration are replaced before it is committed", async () => {
  await using workers = new TestSupervisor(2);
  const died = workers.death(2);
  await workers.known();
  await Promise.all([workers.end("worker-0"), workers.end("worker-1"), died]);
  await workers.supervisor.apply(1, answering("first"));
  assert.equal(await fetchText(workers), "first");
});

test("after repeated deaths of all workers, all serve the last configuration", async () => {
  await using workers = new TestSupervisor(2);
  const { supervisor } = workers;
  await supervisor.apply(1, answering("1"));
  for (const generation of [2, 3]) {
    const both = [workers.end("worker-0"), workers.end("worker-1")];
    // Applied while the threads are ending.
    await Promise.all([...both, supervisor.apply(generation, answering(String(generation)))]);
    for (const name of ["worker-0", "worker-1"]) (await workers.clientOf(name)).destroy();
  }
  assert.equal(await fetchText(workers), "3");
  assert.equal(workers.deaths.length, 4);
});

test("a worker whose port was taken while it was dead retries until it can listen", async () => {
  await using workers = new TestSupervisor(1);
  await workers.supervisor.apply(1, answering("served"));
  const died = workers.death();
  await workers.end("worker-0");
  await died;
  const other = createServer().listen({ port: workers.port, exclusive: true });
  await once(other, "listening");
  await workers.death();
  other.close();
  await once(other, "close");
  (await workers.clientOf("worker-0")).destroy();
  assert.equal(await fetchText(workers), "served");
});

test("when one worker cannot listen, all close the new port and keep the old configuration; a later one works", async () => {
  await using workers = new TestSupervisor(2);
  const { supervisor } = workers;
  await supervisor.apply(1, answering("first"));
  const taken = createServer().listen({ port: 0, host: "::", exclusive: true });
  await once(taken, "listening");
  const { port: free } = await freePort();
  // One of the two cannot listen: its command names a port that is in use.
  const thread = workers.thread("worker-1");
  const send = thread.postMessage.bind(thread);
  const { port } = taken.address() as AddressInfo;
  thread.postMessage = (request: Request): void => {
    if (request.name !== "prepare") {
      send(request);
      return;
    }
    const args = request.args as Args<"prepare">;
    send({ ...request, args: { ...args, ports: { ...args.ports, [`bind/${free}`]: port } } });
  };
  const policies = { directResponse: { status: 200, body: "second" } };
  const second = irOf({ binds: [0, free].map((each) => ({ port: each, listeners: [{ routes: [{ policies }] }] })) });
  await assert.rejects(supervisor.apply(2, second), /EADDRINUSE/);
  await assert.rejects(once(connect(free, "127.0.0.1"), "connect"), { code: "ECONNREFUSED" });
  assert.equal(await fetchText(workers), "first");
  assert.deepEqual(workers.deaths, []);

  thread.postMessage = send;
  await supervisor.apply(3, second);
  taken.close();
  for (const name of ["worker-0", "worker-1"]) (await workers.clientOf(name)).destroy();
  assert.equal(await fetchText(workers), "second");
  assert.equal(await (await fetch(`http://127.0.0.1:${free}/`)).text(), "second");
});

test("a configuration that kills workers twice is rejected with WorkersDied", async () => {
  await using workers = new TestSupervisor(1);
  await workers.supervisor.apply(1, answering("first"));
  // Ends a thread instead of sending its next message.
  const kill = (thread: Worker): void => {
    thread.postMessage = () => void thread.terminate();
  };
  kill(workers.thread("worker-0"));
  process.on("worker", kill);
  try {
    await assert.rejects(workers.supervisor.apply(2, answering("second")), WorkersDied);
  } finally {
    process.off("worker", kill);
  }
  (await workers.clientOf("worker-0")).destroy();
  assert.equal(await fetchText(workers), "first");
});

test("a worker that dies soon after its start is replaced after a pause", async () => {
  let startedAt = performance.now();
  await using workers = new TestSupervisor(1);
  await workers.supervisor.apply(1, answering("served"));
  for (let round = 0; round < 2; round++) {
    const died = workers.death();
    // Before its end: the supervisor may notice that earlier than the test does.
    const endsAt = performance.now();
    await workers.end("worker-0");
    await died;
    await once(process, "worker");
    // On a busy machine the start alone may take so long that the death is no early one. Timers may be early by less than a millisecond.
    assert.ok(endsAt - startedAt > 5000 || performance.now() - endsAt > 998);
    startedAt = endsAt;
  }
  (await workers.clientOf("worker-0")).destroy();
});

test("a replacement has the log filter that was set while the process ran", async () => {
  await using workers = new TestSupervisor(1);
  const { supervisor } = workers;
  await supervisor.apply(1, answering("served"));
  await fetchText(workers);
  await supervisor.setLogFilter("info");
  await workers.end("worker-0");
  (await workers.clientOf("worker-0")).destroy();
  const before = workers.log.length;
  const deadline = Date.now() + 30_000;
  while (!workers.log.slice(before).includes('"/first"')) {
    (await workers.clientOf("worker-0")).destroy();
    assert.ok(Date.now() < deadline, "requests are not logged");
  }
});

test("following goes on when a worker dies: it is said, and the replacement takes part", async () => {
  await using workers = new TestSupervisor(1);
  const { supervisor } = workers;
  await supervisor.apply(1, answering("served"));
  const types: string[] = [];
  const ended = Promise.withResolvers<void>();
  const reader: FollowReader = {
    onDrain: undefined,
    events: (events) => {
      for (const { json } of events) {
        const { request, message } = JSON.parse(json ?? '{"message":{}}') as {
          request: number | null;
          message: { type: string };
        };
        if (["workerDied", "requestFinished", "followEnded"].includes(message.type))
          types.push(`${request} ${message.type}`);
      }
      return true;
    },
    end: () => ended.resolve(),
  };
  const options = { reveal: false, maxBodyBytes: 0 };
  await supervisor.hub.follow({ count: 2, forMs: 60_000, options, filter: { functions: "" } }, reader);
  await fetchText(workers);
  await until(() => types.length === 1);
  const died = workers.death();
  await workers.end("worker-0");
  await died;
  (await workers.clientOf("worker-0")).destroy();
  await ended.promise;
  assert.deepEqual(types, ["1 requestFinished", "null workerDied", "2 requestFinished", "null followEnded"]);
});

test("a reader that stands still while a worker dies under load: each request was shown or is counted", async () => {
  await using workers = new TestSupervisor(2);
  const { supervisor } = workers;
  await supervisor.apply(1, answering("x".repeat(20_000)));
  const seen: { readonly request: number | null; readonly message: Record<string, unknown> }[] = [];
  let lastId = "";
  let standsStill = true;
  const reader: FollowReader = {
    onDrain: undefined,
    events: (events) => {
      if (standsStill && seen.length > 0) return false;
      for (const { json, id } of events) {
        if (json !== undefined) seen.push(JSON.parse(json));
        lastId = id;
      }
      return true;
    },
    end: () => {},
  };
  const options = { reveal: false, maxBodyBytes: 32_000 };
  await supervisor.hub.follow({ count: 100_000, forMs: 60_000, options, filter: { functions: "" } }, reader);
  let sent = 0;
  let answered = 0;
  const client = async (): Promise<void> => {
    for (let index = 0; index < 30; index++) {
      sent++;
      await fetchText(workers).then(
        () => answered++,
        () => undefined,
      );
    }
  };
  const clients = Promise.all(Array.from({ length: 20 }, client));
  await until(() => answered > 150);
  const died = workers.death();
  await workers.end("worker-0");
  await died;
  await clients;
  await supervisor.drain(10_000);
  standsStill = false;
  reader.onDrain?.();
  const dropped = seen.filter(({ message }) => message.type === "dropped").map(({ message }) => message);
  const sum = (name: string): number => dropped.reduce((total, each) => total + Number(each[name]), 0);
  const finished = seen.filter(({ message }) => message.type === "requestFinished").length;
  const { type, requests, unfinished } = seen.at(-1)?.message ?? {};
  assert.equal(type, "followEnded");
  assert.equal(unfinished, 0);
  assert.ok(dropped.length > 0 && finished > 0);
  assert.equal(finished + sum("requests"), requests);
  assert.ok(Number(requests) >= answered && Number(requests) <= sent, `${answered} <= ${requests} <= ${sent}`);
  assert.equal(Number(lastId.split("-")[1]), seen.length - dropped.length + sum("count"));
});

test("locks of rate limits that a dead worker held are released", async (t: TestContext) => {
  let memory: SharedArrayBuffer | undefined;
  const release = TokenBuckets.prototype.releaseLocksOf;
  t.mock.method(TokenBuckets.prototype, "releaseLocksOf", function (this: TokenBuckets, worker: number): void {
    memory = this.memory;
    release.call(this, worker);
  });
  await using workers = new TestSupervisor(2);
  const localRateLimit = [{ maxTokens: 1000, tokensPerFill: 1000, fillInterval: "1s" }];
  const policies = { localRateLimit, directResponse: { status: 200, body: "limited" } };
  await workers.supervisor.apply(1, irOf({ binds: [{ port: 0, listeners: [{ routes: [{ policies }] }] }] }));
  await workers.known();
  const died = workers.death();
  await workers.end("worker-0");
  await died;
  assert.ok(memory !== undefined);
  // It dies again while it holds every lock. Locks follow the buckets in memory: 64 buckets of 32 bytes for each.
  (await workers.clientOf("worker-0")).destroy();
  const sets = Math.floor(memory.byteLength / (64 * 32 + 4));
  new Int32Array(memory, sets * 64 * 32, sets).fill(1);
  const again = workers.death();
  await workers.end("worker-0");
  await again;
  assert.equal(await fetchText(workers), "limited");
});

test("requests that a dead worker served no longer count for concurrency limits", async () => {
  await using workers = new TestSupervisor(2);
  const policies = {
    concurrencyLimit: [{ maxRequests: 1 }],
    delay: { duration: 'request.path == "/hold" ? duration("1h") : duration("0s")' },
    directResponse: { status: 200, body: "served" },
  };
  await workers.supervisor.apply(1, irOf({ binds: [{ port: 0, listeners: [{ routes: [{ policies }] }] }] }));
  const client = await workers.clientOf("worker-0");
  client.write("GET /hold HTTP/1.1\r\nHost: a\r\n\r\n");
  while ((await fetchText(workers)) !== "too many requests in progress");
  const died = workers.death();
  await workers.end("worker-0");
  await died;
  assert.equal(await fetchText(workers), "served");
});

test("a worker that dies during the drain is said, and the drain ends the stream", async () => {
  await using workers = new TestSupervisor(2);
  const { supervisor } = workers;
  await supervisor.apply(1, answering("x"));
  const busy = await workers.clientOf("worker-0");
  busy.write("GET /slow HTTP/1.1\r\n");
  while (!JSON.stringify(await supervisor.tasks()).includes('"state":"head"'));
  const types: string[] = [];
  const reader: FollowReader = {
    onDrain: undefined,
    events: (events) => {
      for (const { json } of events) types.push(/"type":"(\w+)"/.exec(json ?? "")?.[1] ?? "ready");
      return true;
    },
    end: () => void types.push("."),
  };
  const options = { reveal: false, maxBodyBytes: 0 };
  await supervisor.hub.follow({ count: 2, forMs: 60_000, options, filter: { functions: "" } }, reader);
  const drained = supervisor.drain(60_000);
  await workers.end("worker-0");
  await drained;
  assert.deepEqual(types, ["ready", "workerDied", "followEnded", "."]);
});

test("the drain does not wait for a worker that dies", async () => {
  await using workers = new TestSupervisor(2);
  await workers.supervisor.apply(1, answering("x"));
  // In the middle of a head: such a connection is not idle, so the drain waits for it.
  const busy = await workers.clientOf("worker-0");
  busy.write("GET /slow HTTP/1.1\r\n");
  while (!JSON.stringify(await workers.supervisor.tasks()).includes('"state":"head"'));
  const drained = workers.supervisor.drain(60_000);
  await workers.end("worker-0");
  assert.equal(await drained, 0);
});

test("a worker that hangs in a step of the drain leaves the others time to finish their connections", async () => {
  await using workers = new TestSupervisor(2);
  const { supervisor } = workers;
  await supervisor.apply(1, answering("x"));
  const idle = await workers.clientOf("worker-1");
  const thread = workers.thread("worker-0");
  const send = thread.postMessage.bind(thread);
  thread.postMessage = (request: Request): void => {
    if (request.name !== "drain") send(request);
  };
  const ended = once(idle.resume(), "close");
  assert.equal(await supervisor.drain(4000), 0, "connections that were cut");
  await ended;
});

test("evictions survive the deaths of all workers", async () => {
  let failures = 0;
  await using good = await RawUpstream.answering(() => reply("good"));
  await using bad = await RawUpstream.answering(() => {
    failures++;
    return reply("bad", [], "500 Internal Server Error");
  });
  const workload = (uid: string, port: number): object => ({
    uid,
    name: uid,
    namespace: "a",
    workloadIps: ["127.0.0.1"],
    services: { "a/shop": { 80: port } },
  });
  const policies = { health: { eviction: { duration: "1h" } } };
  const backends = [{ service: { name: "a/shop", port: 80 }, policies }];
  const services = [{ name: "shop", namespace: "a", hostname: "shop", ports: { 80: 80 } }];
  const workloads = [workload("good", good.port), workload("bad", bad.port)];
  await using workers = new TestSupervisor(2);
  await workers.supervisor.apply(
    1,
    irOf({ binds: [{ port: 0, listeners: [{ routes: [{ backends }] }] }], services, workloads }),
  );
  while (failures === 0) await fetchText(workers);
  // Messages keep their order: the first reply follows the notice of eviction, the second one the command to all others.
  for (let i = 0; i < 2; i++) await workers.supervisor.tasks();
  const before = failures;
  for (const name of ["worker-0", "worker-1"]) {
    await workers.end(name);
    (await workers.clientOf(name)).destroy();
  }
  for (let i = 0; i < 30; i++) assert.equal(await fetchText(workers), "good");
  assert.equal(failures, before);
});

test("maxRequests and the choice among endpoints count the requests of all workers, but not of one that has died", async (t: TestContext) => {
  const memoryFor = t.mock.method(SharedLoads, "memoryFor");
  const answers = Promise.withResolvers<void>();
  const listen = (): Promise<RawUpstream> =>
    RawUpstream.listen(async (peer) => {
      for (;;) {
        const { start } = await peer.message();
        if (start.includes("/hang")) await answers.promise;
        peer.send(reply("answered"));
      }
    });
  await using one = await listen();
  await using two = await listen();
  const endpoints = [one, two].map(({ port }) => ({ host: `127.0.0.1:${port}` }));
  const routes = [{ backends: [{ name: "pool", endpoints, policies: { http: { maxRequests: 1 } } }] }];
  await using workers = new TestSupervisor(2);
  await workers.supervisor.apply(1, irOf({ binds: [{ port: 0, listeners: [{ routes }] }] }));
  const inProgress = async (): Promise<number[]> =>
    [...(await workers.supervisor.endpoints()).values()].map(({ pending }) => pending).sort();
  const clients = await Promise.all([workers.clientOf("worker-0"), workers.clientOf("worker-1")]);
  const [victim, other] = clients as [Socket, Socket];
  victim.write(HANG);
  await until(async () => (await inProgress()).join() === "0,1");
  other.write(HANG);
  await until(async () => (await inProgress()).join() === "1,1");
  assert.equal(await fetchText(workers), "too many requests to the backend");
  const died = workers.death();
  // As if it died while it holds the lock of the table, which its replacement needs.
  const [{ result: memory } = {}] = memoryFor.mock.calls;
  assert.ok(memory !== undefined);
  new Int32Array(memory)[1] = 1;
  await workers.end("worker-0");
  await died;
  const next = await workers.clientOf("worker-1");
  next.write(HANG);
  await until(async () => (await inProgress()).join() === "1,1");
  assert.equal(await fetchText(workers), "too many requests to the backend");
  answers.resolve();
  await until(async () => (await inProgress()).join() === "0,0");
  assert.equal(await fetchText(workers), "answered");
  for (const client of [...clients, next, await workers.clientOf("worker-0")]) client.destroy();
});

test("maxRetries counts the retried requests of all workers, but not of one that has died", async () => {
  const hanging = new Set<RawPeer>();
  await using upstream = await RawUpstream.listen(async (peer) => {
    for (;;) {
      const message = await peer.message();
      if (message.start.includes("/first")) peer.send(reply("first"));
      else if (valuesOf(message, "x-retry-attempt").length === 0)
        peer.send(reply("failed", [], "500 Internal Server Error"));
      else if (message.start.includes("/hang")) hanging.add(peer);
      else peer.send(reply("retried"));
    }
  });
  const backends = [{ host: `127.0.0.1:${upstream.port}`, policies: { http: { maxRetries: 1 } } }];
  const routes = [{ policies: { retry: { attempts: 1, codes: [500] } }, backends }];
  await using workers = new TestSupervisor(2);
  await workers.supervisor.apply(1, irOf({ binds: [{ port: 0, listeners: [{ routes }] }] }));
  const clients = await Promise.all([workers.clientOf("worker-0"), workers.clientOf("worker-1")]);
  const [victim, other] = clients as [Socket, Socket];
  victim.write(HANG);
  await until(() => hanging.size === 1);
  const ask = async (): Promise<string> => {
    other.write("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n");
    const [answer] = await once(other, "data");
    return /\w+$/.exec(String(answer))?.[0] ?? "";
  };
  assert.equal(await ask(), "failed");
  const died = workers.death();
  await workers.end("worker-0");
  await died;
  assert.equal(await ask(), "retried");
  for (const client of clients) client.destroy();
});

test("one worker probes for all; when it dies, another takes over with the known states", async () => {
  const probes = new Set<RawPeer>();
  let well = false;
  await using bad = await RawUpstream.listen(async (peer) => {
    for (;;) {
      await peer.message();
      probes.add(peer);
      peer.send(reply("", [], well ? "200 OK" : "503 Service Unavailable"));
    }
  });
  await using workers = new TestSupervisor(2);
  const { supervisor } = workers;
  /** What each worker knows of the endpoint. */
  const known = async (): Promise<(boolean | undefined)[]> => {
    const replies = await supervisor.collect("endpoints", {});
    return [...replies.values()].map(([stats]) => stats?.check?.healthy);
  };
  const agree = (healthy: boolean): Promise<true> =>
    until(async () => {
      const answers = await known();
      return answers.length === 2 && answers.every((each) => each === healthy);
    });
  const active = { http: {}, interval: "100ms", unhealthyThreshold: 1 };
  const backends = [{ host: `127.0.0.1:${bad.port}`, policies: { health: { active } } }];
  await supervisor.apply(1, irOf({ binds: [{ port: 0, listeners: [{ routes: [{ backends }] }] }] }));
  await agree(false);
  assert.equal(probes.size, 1, "only one worker probes");
  const died = workers.death();
  await Promise.all([workers.end("worker-0"), died]);
  // The replacement is notified before it serves.
  await agree(false);
  await until(() => probes.size === 2);
  well = true;
  await agree(true);
  assert.equal(probes.size, 2);
  const results = await supervisor.probe([...(await supervisor.endpoints()).keys(), "unknown"]);
  assert.equal(results.length, 1, "both workers know the endpoint, and one of them probes it");
});

test("a TLS session is resumed by whichever worker gets the connection", { skip: noOpenssl }, async () => {
  using ca = new TestCa();
  const { certFile, keyFile } = ca.issue("a.example");
  await using workers = new TestSupervisor(2);
  const routes = [{ policies: { directResponse: { status: 200, body: "served" } } }];
  const listener = { protocol: "HTTPS", tls: { cert: certFile, key: keyFile }, routes };
  await workers.supervisor.apply(1, irOf({ binds: [{ port: 0, listeners: [listener] }] }));
  const options = { host: "127.0.0.1", port: workers.port, servername: "a.example", ca: ca.cert };
  const first = tlsConnect(options);
  const [session] = (await once(first, "session")) as [Buffer];
  first.destroy();
  // The system spreads connections over both workers.
  for (let connection = 0; connection < 16; connection++) {
    const socket = tlsConnect({ ...options, session });
    await once(socket, "secureConnect");
    assert.equal(socket.isSessionReused(), true, `connection ${connection}`);
    socket.destroy();
  }
});

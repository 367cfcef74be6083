import assert from "node:assert/strict";
import { test } from "node:test";
import { collectionOf, type Received, TestApiServer } from "../../test/helpers/kube/api-server.ts";
import { Refused } from "../../test/helpers/kube/store.ts";
import { until } from "../../test/helpers/until.ts";
import { LogOutput } from "../base/log.ts";
import { parseLogFilter } from "../base/log-filter.ts";
import { Backoff } from "./backoff.ts";
import { keyOfObject } from "./keys.ts";
import type { Kind, Objects } from "./objects.ts";
import { Reflector, type ReflectorOptions, type Sink } from "./reflector.ts";

/** Keeps what it is given, and lets tests wait for it. */
class Recorder implements Sink {
  readonly objects = new Map<string, Objects[Kind]>();
  #changed = Promise.withResolvers<void>();

  replace<K extends Kind>(_kind: K, objects: readonly Objects[K][]): void {
    this.objects.clear();
    for (const object of objects) this.objects.set(keyOfObject(object), object);
    this.#notify();
  }
  set(object: Objects[Kind]): void {
    this.objects.set(keyOfObject(object), object);
    this.#notify();
  }
  delete(_kind: Kind, key: string): void {
    this.objects.delete(key);
    this.#notify();
  }

  async until(holds: () => boolean): Promise<void> {
    const late = AbortSignal.timeout(10_000);
    const { promise, reject } = Promise.withResolvers<never>();
    late.addEventListener("abort", () => reject(new Error(`objects: ${[...this.objects.keys()].join(" ")}`)));
    while (!holds()) await Promise.race([this.#changed.promise, promise]);
  }

  keys(): string {
    return [...this.objects.keys()].sort().join(" ");
  }

  #notify(): void {
    const { resolve } = this.#changed;
    this.#changed = Promise.withResolvers();
    resolve();
  }
}

/** Follows Gateways until the end of the test. */
async function follow(server: TestApiServer, options: Partial<ReflectorOptions<"Gateway">> = {}) {
  const sink = new Recorder();
  const lines: string[] = [];
  const log = new LogOutput(parseLogFilter("info"), "text", (line) => lines.push(line)).logger("tracegate/syncer");
  const client = server.client();
  const reflector = new Reflector({
    client,
    kind: "Gateway",
    sink,
    log,
    pauses: new Backoff(5, 20),
    absentPause: 10,
    ...options,
  });
  const stop = new AbortController();
  const ended = reflector.run(stop.signal);
  return {
    sink,
    lines,
    reflector,
    lists: () => server.received.filter(isList).length,
    async [Symbol.asyncDispose]() {
      stop.abort();
      await ended;
      client.close();
    },
  };
}

function isList({ path, query }: Received): boolean {
  return path.endsWith("/gateways") && query.get("watch") === null && query.get("continue") === null;
}

const gateway = (name: string, annotations: Record<string, string> = {}) =>
  ({
    apiVersion: "gateway.networking.k8s.io/v1",
    kind: "Gateway",
    metadata: { namespace: "apps", name, annotations },
    spec: { gatewayClassName: "tracegate" },
  }) as const;

test("objects are listed in pages, then followed, with the metadata that is read", async () => {
  await using server = await TestApiServer.start();
  for (let i = 0; i < 1203; i++)
    server.set(gateway(`g${i}`, { "kubectl.kubernetes.io/last-applied-configuration": "{}" }));
  await using following = await follow(server);
  const { sink, reflector } = following;
  await reflector.synced;
  assert.equal(sink.objects.size, 1203);
  assert.equal(server.received.filter(({ query }) => query.get("continue") !== null).length, 2);
  assert.equal(sink.objects.get("apps/g7")?.metadata.annotations, undefined);
  server.set(gateway("new"));
  await sink.until(() => sink.objects.has("apps/new"));
  server.set(gateway("new", { changed: "yes" }));
  await sink.until(() => sink.objects.get("apps/new")?.metadata.annotations?.changed === "yes");
  server.delete("Gateway", "apps/new");
  await sink.until(() => !sink.objects.has("apps/new"));
  assert.equal(reflector.state, "following");
});

test("built-in objects get the kind and version that lists leave out, and an empty namespace if they have none", async () => {
  await using server = await TestApiServer.start();
  server.set({ apiVersion: "v1", kind: "Node", metadata: { name: "node1" } });
  const sink = new Recorder();
  const log = new LogOutput(parseLogFilter("off"), "text", () => {}).logger("tracegate/syncer");
  using client = server.client();
  const reflector = new Reflector({ client, kind: "Node", sink, log });
  const stop = new AbortController();
  const ended = reflector.run(stop.signal);
  await reflector.synced;
  const { apiVersion, kind, metadata } = sink.objects.get("node1") ?? assert.fail();
  assert.deepEqual([apiVersion, kind, metadata.namespace], ["v1", "Node", ""]);
  stop.abort();
  await ended;
});

test("a watch that is lost is resumed where it was, without another list", async () => {
  await using server = await TestApiServer.start();
  server.set(gateway("one"));
  await using following = await follow(server);
  const { sink, reflector, lists } = following;
  await reflector.synced;
  for (const how of ["end", "cut"] as const) {
    server.set(gateway(how));
    await sink.until(() => sink.objects.has(`apps/${how}`));
    server.endWatches(how);
    server.delete("Gateway", `apps/${how}`);
    await sink.until(() => !sink.objects.has(`apps/${how}`));
  }
  assert.equal(lists(), 1);
});

test("a version that the server no longer has leads to another list", async () => {
  await using server = await TestApiServer.start();
  server.set(gateway("one"));
  server.set(gateway("two"));
  await using following = await follow(server);
  const { sink, reflector, lists } = following;
  await reflector.synced;
  await server.stop();
  server.delete("Gateway", "apps/one");
  server.set(gateway("three"));
  server.compact();
  await server.listen();
  await sink.until(() => sink.keys() === "apps/three apps/two");
  assert.equal(lists(), 2);
});

test("bookmarks keep the version fresh", async () => {
  await using server = await TestApiServer.start();
  server.set(gateway("one"));
  await using following = await follow(server);
  const { sink, reflector, lists } = following;
  await reflector.synced;
  server.set(gateway("two"));
  await sink.until(() => sink.objects.has("apps/two"));
  server.set({ apiVersion: "v1", kind: "Namespace", metadata: { name: "other" } });
  server.sendBookmarks();
  server.endWatches();
  server.compact();
  server.set(gateway("three"));
  await sink.until(() => sink.objects.has("apps/three"));
  assert.equal(lists(), 1);
});

test("a list whose pages expire is requested in one piece", async () => {
  await using server = await TestApiServer.start();
  for (let i = 0; i < 501; i++) server.set(gateway(`g${i}`));
  server.intercept = ({ query }) => {
    if (query.get("continue") !== null) {
      server.set(gateway("late"));
      server.compact();
    }
  };
  await using following = await follow(server);
  await following.reflector.synced;
  assert.equal(following.sink.objects.size, 502);
});

test("a kind that is not installed counts as synced, is mentioned once, and followed when it is installed", async () => {
  await using server = await TestApiServer.start();
  server.missing.add(collectionOf("Gateway"));
  await using following = await follow(server);
  const { sink, reflector, lines, lists } = following;
  await reflector.synced;
  assert.equal(reflector.state, "absent");
  await until(() => lists() > 2);
  assert.equal(lines.length, 1);
  assert.match(lines[0] ?? "", /kind is not installed; waiting for its CRD kind=Gateway/);
  server.missing.clear();
  server.set(gateway("one"));
  await sink.until(() => sink.objects.has("apps/one"));
  assert.equal(reflector.state, "following");
});

test("an optional kind that may not be listed counts as synced, is mentioned once, and followed with the permission", async () => {
  await using server = await TestApiServer.start();
  let denied = true;
  server.intercept = async () => {
    if (denied) throw new Refused(403, "Forbidden", "gateways is forbidden");
  };
  server.set(gateway("one"));
  await using required = await follow(server);
  await using optional = await follow(server, { optional: true });
  await optional.reflector.synced;
  assert.equal(optional.reflector.state, "absent");
  await until(() => optional.lists() > 4);
  assert.equal(optional.lines.length, 1);
  assert.match(optional.lines[0] ?? "", /no permission to list and watch an optional kind kind=Gateway/);
  // Other kinds are waited for: otherwise their objects would count as absent.
  assert.equal(required.reflector.state, "starting");
  denied = false;
  await optional.sink.until(() => optional.sink.objects.has("apps/one"));
});

test("during an outage of the server, known objects are kept; the log says so once", async () => {
  await using server = await TestApiServer.start();
  server.set(gateway("one"));
  await using following = await follow(server);
  const { sink, reflector, lines } = following;
  await reflector.synced;
  await until(() => server.watches === 1);
  await server.stop();
  await until(() => reflector.state === "lost");
  assert.equal(sink.keys(), "apps/one");
  server.set(gateway("two"));
  await server.listen();
  await sink.until(() => sink.keys() === "apps/one apps/two");
  assert.equal(reflector.state, "following");
  assert.equal(lines.filter((line) => line.includes("cannot follow")).length, 1);
});

test("a kind that may not be read keeps the reflector from syncing, and the log says so once", async () => {
  await using server = await TestApiServer.start();
  server.intercept = ({ path }) => {
    if (path.endsWith("/gateways")) throw new Refused(403, "Forbidden", "gateways is forbidden: no rights");
  };
  await using following = await follow(server);
  const { reflector, lines, lists, sink } = following;
  await until(() => lists() > 3);
  assert.equal(reflector.state, "starting");
  assert.equal(lines.length, 1);
  assert.match(lines[0] ?? "", /cannot follow, retrying kind=Gateway error="gateways is forbidden: no rights"/);
  server.intercept = undefined;
  server.set(gateway("one"));
  await sink.until(() => sink.objects.has("apps/one"));
});

test("a server that rejects every version as too old is not sent list requests in a loop", async () => {
  await using server = await TestApiServer.start();
  server.set(gateway("one"));
  let watches = 0;
  server.intercept = ({ query }) => {
    if (query.get("watch") === null) return;
    watches++;
    throw new Refused(410, "Expired", "too old resource version");
  };
  const lengths: number[] = [];
  const pauses = new Backoff(1, 64, () => 1);
  const next = pauses.next.bind(pauses);
  pauses.next = () => {
    const pause = next();
    lengths.push(pause);
    return pause;
  };
  await using following = await follow(server, { pauses });
  await until(() => watches >= 5, "five watches");
  // Each list is followed by a pause, and each pause is longer.
  assert.deepEqual(lengths.slice(0, 4), [1, 2, 4, 8]);
  assert.equal(following.sink.keys(), "apps/one");
});

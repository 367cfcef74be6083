import assert from "node:assert/strict";
import { request } from "node:http";
import { after, before, suite, test } from "node:test";
import { gunzipSync } from "node:zlib";
import { Profile } from "pprof-format";
import { TestGateway } from "../../helpers/gateway.ts";
import { admin, call, rawClient, Upstream } from "../trace/support.ts";
import { Load } from "./load.ts";

/** Its files in a checkout; in the package they are one. */
const DATA_PLANE = /src\/(http|proxy|upstream)\/.*\.ts$|dist\/code\/worker-worker\.cjs$/;

const LISTENER = "default/default/bind/0/listener0";

suite("the admin server of a gateway with two workers", () => {
  let upstream: Upstream;
  let gateway: TestGateway;
  let port: number;

  before(async () => {
    upstream = await Upstream.start();
    gateway = await TestGateway.start({
      config: { workerThreads: 2, sensitiveHeaders: ["X-Token"] },
      backends: [{ name: "named", host: upstream.address }],
      routeGroups: [{ name: "g", routes: [{ name: "leaf", backends: [{ host: upstream.address }] }] }],
      policies: [
        {
          name: { name: "p" },
          target: { route: { name: "r" } },
          policy: { requestHeaderModifier: { set: { "X-Token": "s3cret-1" } } },
        },
      ],
      binds: [
        {
          port: 0,
          listeners: [
            {
              protocol: "HTTP",
              routes: [
                {
                  name: "picky",
                  hostnames: ["h.test"],
                  matches: [
                    {
                      path: { exact: "/a" },
                      method: "GET",
                      headers: [{ name: "Authorization", value: { exact: "s3cret-2" } }],
                      query: [{ name: "q", value: { regex: "x+" } }],
                    },
                  ],
                  policies: { timeout: { requestTimeout: "3s" } },
                  backends: [{ backend: "/named" }, { routeGroup: "g", weight: 0 }],
                },
                {
                  name: "r",
                  backends: [
                    {
                      host: upstream.address,
                      policies: { requestHeaderModifier: { add: { authorization: "s3cret-3" } } },
                    },
                  ],
                },
              ],
            },
          ],
        },
      ],
    });
    port = gateway.port();
  });
  after(async () => {
    await gateway.stop();
    await upstream.close();
  });

  test("the dump: binds with real ports, listeners and routes by key, policies, settings; no secrets", async () => {
    const dump = (await admin(gateway).configDump()) as Dump;
    assert.deepEqual(Object.keys(dump), [
      ...["backends", "binds", "config", "policies", "routes", "services", "version", "workloads"],
    ]);
    const [bind] = dump.binds;
    assert.equal(bind?.key, "bind/0");
    assert.equal(bind?.address, `[::]:${port}`);
    const listener = bind?.listeners[LISTENER];
    const { routes, ...rest } = listener ?? { routes: {} };
    assert.deepEqual(rest, {
      key: LISTENER,
      gatewayName: "default",
      gatewayNamespace: "default",
      listenerName: "listener0",
      listenerSet: null,
      hostname: "",
      origin: "binds[0].listeners[0]",
      protocol: "HTTP",
    });
    assert.deepEqual(Object.keys(routes), [`${LISTENER}/default/picky`, `${LISTENER}/default/r`]);
    const picky = routes[`${LISTENER}/default/picky`];
    assert.deepEqual(picky?.hostnames, ["h.test"]);
    assert.deepEqual(picky?.matches, [
      {
        path: { exact: "/a" },
        method: "GET",
        headers: [{ name: "authorization", value: { exact: "<redacted>" } }],
        query: [{ name: "q", value: { regex: "x+" } }],
      },
    ]);
    assert.deepEqual(picky?.inlinePolicies, [{ timeout: { requestTimeout: "3s" } }]);
    assert.equal(picky?.backends[0]?.backend, "/named");
    const origin = "binds[0].listeners[0].routes[0].backends[1]";
    assert.deepEqual(picky?.backends[1], { weight: 0, routeGroup: "g", origin });
    assert.equal(routes[`${LISTENER}/default/r`]?.backends[0]?.backend, `/${LISTENER}/default/r/backend0`);
    assert.deepEqual(Object.keys(dump.routes.routeGroups.g ?? {}), ["group/g/default/leaf"]);
    const names = [`${LISTENER}/default/r/backend0`, "group/g/default/leaf/backend0", "named"];
    assert.deepEqual(
      dump.backends.map(({ backend }) => backend),
      names.map((name) => ({ host: { name, namespace: "", target: upstream.address } })),
    );
    assert.deepEqual(dump.policies, [
      {
        key: "default/p",
        name: { name: "p", namespace: "default" },
        target: { route: { name: "r", namespace: "default" } },
        origin: "policies[0]",
        policy: { traffic: { phase: "route", requestHeaderModifier: { set: { "X-Token": "<redacted>" } } } },
      },
    ]);
    assert.equal(dump.config.numWorkerThreads, 2);
    assert.equal(dump.config.listening.admin?.[0], new URL(gateway.url("admin")).host);
    assert.ok(!JSON.stringify(dump).includes("s3cret"));
  });

  test("/config/status", async () => {
    const { appliedAt, loadedAt, hash, ...status } = await admin(gateway).configStatus();
    assert.deepEqual(status, {
      generation: 1,
      lastError: null,
      nextRetryAt: null,
      diskDiffers: false,
      synchronized: true,
      restartRequired: [],
      warnings: { count: 0, first: [] },
      missingDocuments: [],
      source: gateway.file,
    });
    assert.match(hash ?? "", /^[0-9a-f]{64}$/);
    for (const time of [appliedAt, loadedAt]) assert.match(time ?? "", /^\d{4}-\d\d-\d\dT.*Z$/);
  });

  test("/logging: a new filter takes effect in the workers", async () => {
    const client = admin(gateway);
    assert.equal(await client.logging(), "current log level is info\n");
    assert.equal(await (await fetch(`${gateway.url("admin")}/logging`)).text(), "current log level is info\n");
    const logged = (path: string) => gateway.lines.some((line) => line["http.path"] === path);
    // The response to a change arrives before the workers have applied it; a further request to them is behind it.
    const settle = () => client.tasks();
    assert.equal(await client.setLogging("request=off"), "current log level is info,request=off\n");
    await settle();
    await Promise.all(Array.from({ length: 10 }, () => call(port, { path: "/unlogged" })));
    assert.equal(await client.setLogging("", { reset: true }), "current log level is info\n");
    await settle();
    await Promise.all(Array.from({ length: 10 }, (_, index) => call(port, { path: `/logged/${index}` })));
    await gateway.until(() => Array.from({ length: 10 }, (_, i) => logged(`/logged/${i}`)).every(Boolean), "the lines");
    assert.equal(logged("/unlogged"), false);
    await assert.rejects(client.setLogging("nonsense"), /400.*Invalid level provided: nonsense/s);
    assert.equal((await fetch(`${gateway.url("admin")}/logging?level=debug`)).status, 405);
  });

  test("/memory: the process, and each thread", async () => {
    const memory = (await admin(gateway).memory()) as Memory;
    assert.equal(memory.capture_mode, "live");
    assert.ok(memory.process.resident_bytes > 10_000_000);
    const { kind, specific } = memory.allocator;
    assert.equal(kind, "v8");
    assert.deepEqual(specific.threads.map(({ thread }) => thread).sort(), ["main", "worker-0", "worker-1"]);
  });

  test("a CPU profile under load: all threads, functions of our own files", async () => {
    await using _load = await Load.start(port, 16);
    const missing = new Set(["main", "worker-0", "worker-1", "a file of the data plane"]);
    // Samples are random on a busy machine: what one profile misses, another one has.
    for (const deadline = Date.now() + 30_000; missing.size > 0; ) {
      assert.ok(Date.now() < deadline, `not in any profile: ${[...missing].join(", ")}`);
      const profile = Profile.decode(gunzipSync(await admin(gateway).cpuProfile(1, { frequency: 1000 })));
      const text = (index: unknown): string => profile.stringTable.strings[Number(index)] ?? "";
      for (const { label } of profile.sample)
        for (const { key, str } of label) if (text(key) === "thread") missing.delete(text(str));
      if (profile.function.some(({ filename }) => DATA_PLANE.test(text(filename))))
        missing.delete("a file of the data plane");
    }
  });

  test("a heap profile decodes", async () => {
    const profile = Profile.decode(gunzipSync(await admin(gateway).heapProfile()));
    const kinds = profile.sampleType.map(({ type }) => profile.stringTable.strings[Number(type)]);
    assert.ok(
      kinds.some((kind) => /space|objects/.test(kind ?? "")),
      kinds.join(),
    );
  });

  test("/debug/tasks: a hanging request under its listener and connection", async () => {
    const hanging = upstream.hang("/hang");
    const client = await rawClient(port, "GET /hang?x=1 HTTP/1.1\r\nHost: a.test\r\n\r\n");
    await hanging;
    const { workload } = (await admin(gateway).tasks()) as Tasks;
    const found = Object.values(workload)
      .flat()
      .flatMap((listener) => listener.connections.map((connection) => ({ listener, connection })))
      .find(({ connection }) => connection.client.endsWith(`:${client.localPort}`));
    assert.equal(found?.listener.bind, "bind/0");
    assert.equal(found?.listener.port, port);
    assert.equal(found?.connection.state, "wait");
    const { ageMs, ...exchange } = found?.connection.exchange ?? { ageMs: -1 };
    assert.deepEqual(exchange, {
      phase: "attempt",
      attempt: 1,
      request: "GET a.test/hang",
      route: "default/r",
      endpoint: upstream.address,
      bytesReceived: 0,
      bytesSent: 0,
    });
    assert.ok(ageMs >= 0);
    client.destroy();
  });

  test("the admin server responds while the data plane is saturated", async () => {
    await using load = await Load.start(port, 64);
    const client = admin(gateway);
    await load.answered(2000);
    assert.equal((await client.configStatus()).synchronized, true);
    await client.configDump();
    await client.memory();
    await client.tasks();
    assert.equal((await fetch(`${gateway.url("stats")}/metrics`)).status, 200);
    assert.equal((await fetch(`${gateway.url("readiness")}/healthz/ready`)).status, 200);
    await load.answered(2000);
    assert.deepEqual(load.statuses, new Set([200]));
  });

  test("wrong methods are rejected", async () => {
    for (const [method, path, allow] of [
      ["POST", "/config_dump", "GET"],
      ["POST", "/config/status", "GET"],
      ["POST", "/memory", "GET"],
      ["POST", "/debug/tasks", "GET"],
      ["POST", "/debug/pprof/profile", "GET"],
      ["POST", "/debug/pprof/heap", "GET"],
      ["GET", "/quitquitquit", "POST"],
      ["DELETE", "/logging", "GET, POST"],
      ["PUT", "/debug/trace", "GET, POST"],
    ] as const) {
      const answer = await fetch(gateway.url("admin") + path, { method });
      assert.equal(answer.status, 405, `${method} ${path}`);
      assert.equal(answer.headers.get("allow"), allow);
    }
    assert.equal((await fetch(`${gateway.url("admin")}/nothing`)).status, 404);
    assert.equal((await fetch(`${gateway.url("admin")}/debug/pprof/profile?seconds=0`)).status, 400);
    assert.equal((await fetch(`${gateway.url("admin")}/debug/pprof/profile?seconds=301`)).status, 400);
  });

  test("other host names and other origins are rejected, also for a shutdown", async () => {
    for (const headers of [{ host: "rebound.example" }, { origin: "http://evil.example" }, { origin: "null" }])
      assert.equal(await statusOf("POST", "/quitquitquit", headers), 403, JSON.stringify(headers));
    assert.equal(await statusOf("GET", "/config_dump", { host: "rebound.example" }), 403);
    assert.equal(await statusOf("GET", "/config/status", { host: "localhost:1" }), 200);
  });

  function statusOf(method: string, path: string, headers: Record<string, string>): Promise<number> {
    return new Promise((resolve, reject) => {
      request(gateway.url("admin") + path, { method, headers, agent: false }, (response) => {
        response.resume();
        resolve(response.statusCode ?? 0);
      })
        .on("error", reject)
        .end();
    });
  }
});

interface Dump {
  readonly binds: readonly {
    readonly key: string;
    readonly address: string;
    readonly listeners: Readonly<Record<string, { readonly routes: Readonly<Record<string, DumpRoute>> }>>;
  }[];
  readonly backends: readonly { readonly backend: unknown }[];
  readonly policies: unknown;
  readonly routes: { readonly routeGroups: Readonly<Record<string, object>> };
  readonly config: {
    readonly numWorkerThreads: number;
    readonly listening: Readonly<Record<string, readonly string[]>>;
  };
}

interface DumpRoute {
  readonly hostnames?: unknown;
  readonly matches: unknown;
  readonly inlinePolicies?: unknown;
  readonly backends: readonly { readonly backend?: string }[];
}

interface Memory {
  readonly capture_mode: string;
  readonly process: { readonly resident_bytes: number };
  readonly allocator: {
    readonly kind: string;
    readonly specific: { readonly threads: readonly { readonly thread: string }[] };
  };
}

interface Tasks {
  readonly workload: Readonly<
    Record<
      string,
      readonly {
        readonly bind: string;
        readonly port: number;
        readonly connections: readonly {
          readonly client: string;
          readonly state: string;
          readonly exchange?: { readonly ageMs: number };
        }[];
      }[]
    >
  >;
}

import assert from "node:assert/strict";
import { test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { TestPlane } from "../../../test/helpers/data-plane.ts";
import { irOf } from "../../../test/helpers/supervisor.ts";
import { Sweeper } from "../../base/sweeper.ts";
import type { HttpRequest } from "../../http/message/message.ts";
import { type PackedIr, packIr, unpackIr } from "../../ir/packed-ir.ts";
import { RejectedParts } from "../../ir/rejected-parts.ts";
import { ANYWHERE } from "../../net/testing/egress.ts";
import { DEPS } from "../../policies/testing/context.ts";
import { Metrics } from "../../telemetry/metrics.ts";
import { TicketSecrets } from "../../tls/ticket-keys.ts";
import { sensitiveHeaders } from "../../trace/redaction.ts";
import { Endpoints } from "../../upstream/endpoints/endpoints.ts";
import { Pools } from "../../upstream/pools/pools.ts";
import { Resolver } from "../../upstream/resolve/resolver.ts";
import { type CompilerServices, compileIr, type Generation, inOneGo } from "./compile-ir.ts";
import type { CompiledRoute } from "./compiled.ts";

/** Compiles configurations one after the other, as a worker does. */
class TestWorker {
  readonly endpoints: Endpoints;
  readonly #services: CompilerServices;
  #current: Generation | undefined;

  constructor() {
    const settings = { connectTimeout: 1000, idleTimeout: 1000, maxIdle: undefined, keepAliveDelay: 0 };
    const pools = new Pools(settings, new Resolver("All", ANYWHERE), { onConnected: () => {} }, new Sweeper());
    this.endpoints = new Endpoints(pools);
    this.#services = {
      metrics: new Metrics(),
      customLabels: undefined,
      policies: { ...DEPS, hidden: sensitiveHeaders([]) },
      locality: {},
      exports: { add: () => {} },
      random: () => 0,
      tickets: new TicketSecrets(),
    };
  }

  /** The steps that compile a configuration, which is not in effect yet. */
  steps(configuration: PackedIr): Generator<void, Generation> {
    return compileIr(1, configuration, this.#services, this.endpoints, this.#current);
  }

  apply(configuration: PackedIr): Generation {
    const before = this.#current;
    this.#current = inOneGo(this.steps(configuration));
    this.#current.destinations.commit();
    this.endpoints.calls = this.#current.calls;
    if (before !== undefined) this.endpoints.drop(before);
    return this.#current;
  }
}

/** A change of any field of a route makes it another one. */
interface TestRoute {
  readonly name: string;
  readonly port?: number;
  readonly policies?: object;
  readonly backends?: readonly object[];
}

function configurationOf(routes: readonly TestRoute[], more: object = {}, listener: object = {}): PackedIr {
  return irOf({
    binds: [
      {
        port: 0,
        listeners: [
          {
            protocol: "HTTP",
            ...listener,
            routes: routes.map(({ name, port = 9, policies = {}, backends = [{ host: `127.0.0.1:${port}` }] }) => ({
              name,
              matches: [{ path: { pathPrefix: `/${name}` } }],
              policies,
              backends,
            })),
          },
        ],
      },
    ],
    ...more,
  });
}

function routeTo(generation: Generation, name: string): CompiledRoute {
  const listener = generation.binds.get("bind/0")?.listeners.find("any.test");
  const request: HttpRequest = {
    method: "GET",
    scheme: "http",
    authority: "any.test",
    path: `/${name}`,
    search: "",
    version: "HTTP/1.1",
    headers: [],
  };
  const selected = listener?.router.select(request, "any.test");
  assert.ok(selected !== undefined, name);
  return selected.route;
}

test("everything that cannot be compiled is named in one attempt, by its listener and route, and changes nothing", () => {
  const worker = new TestWorker();
  const before = worker.apply(configurationOf([{ name: "a" }]));
  const listener = (name: string, authority: string) => ({
    name,
    hostname: `${name}.test`,
    protocol: "HTTP",
    routes: [{ name, policies: { requestRedirect: { authority: { full: authority } } }, backends: [] }],
  });
  const ir = unpackIr(
    irOf({ binds: [{ port: 0, listeners: ["x", "y", "z"].map((name) => listener(name, `${name}.test:80`)) }] }),
  );
  // As a controller of another version may send it.
  const invalid = JSON.parse(JSON.stringify(ir).replaceAll(/"([xz])\.test:80"/g, '"$1.test:"')) as typeof ir;
  const expected = ["x", "z"].map((name) => ({
    listener: ir.binds[0]?.listeners.find((each) => each.name === name)?.key,
    reason: `route default/${name}: requestRedirect.authority.full: "${name}.test:" is not host[:port]`,
  }));
  assert.throws(
    () => inOneGo(worker.steps(packIr(invalid))),
    (error) => {
      assert.ok(error instanceof RejectedParts);
      assert.deepEqual(error.parts, expected);
      assert.equal(error.message, expected[0]?.reason);
      return true;
    },
  );
  assert.equal(routeTo(worker.apply(configurationOf([{ name: "a" }])), "a"), routeTo(before, "a"));
});

test("a reload that changes one of many routes takes the others over, and the changed one takes effect", () => {
  const worker = new TestWorker();
  const before = worker.apply(configurationOf([{ name: "a" }, { name: "b" }, { name: "c" }]));
  const after = worker.apply(configurationOf([{ name: "c" }, { name: "b", port: 10 }, { name: "a" }, { name: "d" }]));
  assert.equal(routeTo(after, "a"), routeTo(before, "a"));
  assert.equal(routeTo(after, "c"), routeTo(before, "c"));
  assert.notEqual(routeTo(after, "b"), routeTo(before, "b"));
  assert.deepEqual(routeTo(after, "b").backends[0]?.target, { type: "static", host: "127.0.0.1", port: 10 });
  assert.deepEqual([...after.calls.keys()].length, 4);
});

test("calls to the backends of unchanged and changed routes keep their counts", () => {
  const worker = new TestWorker();
  const before = worker.apply(configurationOf([{ name: "a" }, { name: "b" }]));
  for (const name of ["a", "b"]) (routeTo(before, name).backends[0] as { calls: { total: number } }).calls.total = 7;
  const after = worker.apply(configurationOf([{ name: "a" }, { name: "b", port: 10 }]));
  assert.deepEqual(
    [...after.calls.values()].map(({ total }) => total),
    [7, 7],
  );
});

test("endpoints of routes that are taken over stay; those that are no longer named are released", () => {
  const worker = new TestWorker();
  const targets = (): string[] => worker.endpoints.stats().map(({ target }) => target);
  worker.apply(
    configurationOf([
      { name: "a", port: 1 },
      { name: "b", port: 2 },
    ]),
  );
  for (let reload = 0; reload < 3; reload++) {
    worker.apply(
      configurationOf([
        { name: "a", port: 1 },
        { name: "b", port: 10 + reload },
      ]),
    );
    assert.deepEqual(targets(), ["127.0.0.1:1", `127.0.0.1:${10 + reload}`]);
  }
  worker.apply(configurationOf([]));
  assert.deepEqual(targets(), []);
});

test("services that policies call stay with the routes that are taken over", () => {
  const worker = new TestWorker();
  const extAuthz = { host: "127.0.0.1:3", protocol: { http: {} } };
  const asking = { name: "asking", policies: { extAuthz } };
  const before = worker.apply(configurationOf([asking]));
  for (let reload = 0; reload < 3; reload++) {
    const after = worker.apply(configurationOf([asking, { name: `new-${reload}`, port: 4 }]));
    assert.equal(routeTo(after, "asking"), routeTo(before, "asking"));
    assert.deepEqual(
      worker.endpoints
        .stats()
        .map(({ target }) => target)
        .sort(),
      ["127.0.0.1:3", "127.0.0.1:4", "127.0.0.1:9"],
    );
  }
});

test("fields belong to the gateway as long as a route says so, taken over or not", () => {
  const worker = new TestWorker();
  const setting = { name: "setting", policies: { requestHeaderModifier: { set: { "x-user": "a" } } } };
  const keyed = {
    name: "keyed",
    policies: { apiKey: { keys: [{ key: "k" }], location: { header: { name: "x-k" } } } },
  };
  const policiesOf = (generation: Generation) => {
    const policies = generation.binds.get("bind/0")?.policies;
    return [policies?.ownFields.has("x-user"), policies?.credentials.headers.has("x-k")];
  };
  assert.deepEqual(policiesOf(worker.apply(configurationOf([setting, keyed]))), [true, true]);
  assert.deepEqual(policiesOf(worker.apply(configurationOf([setting, keyed, { name: "new" }]))), [true, true]);
  assert.deepEqual(policiesOf(worker.apply(configurationOf([setting, { name: "new" }]))), [true, false]);
  assert.deepEqual(policiesOf(worker.apply(configurationOf([{ name: "new" }]))), [false, false]);
});

test("a change of functions or of the listener's names compiles its routes again", () => {
  const worker = new TestWorker();
  const routes = [{ name: "a" }];
  const first = routeTo(worker.apply(configurationOf(routes)), "a");
  const functions = { config: { customFunctions: 'f() { "x" }' } };
  const compiled = [
    configurationOf(routes, functions),
    configurationOf(routes, {}, { name: "other" }),
    configurationOf(routes),
  ].map((configuration) => routeTo(worker.apply(configuration), "a"));
  assert.equal(new Set([first, ...compiled]).size, 4, "each is compiled anew");
});

/** A service whose workloads have these addresses, and another one that does not change. */
function discovered(...ips: readonly string[]): object {
  const service = (name: string) => ({ name, namespace: "n", hostname: `${name}.n`, ports: { 80: 8080 } });
  const workload = (of: string, ip: string) => ({
    name: ip,
    uid: ip,
    namespace: "n",
    workloadIps: [ip],
    services: { [`n/${of}.n`]: {} },
  });
  return {
    services: [service("s"), service("other")],
    workloads: [...ips.map((ip) => workload("s", ip)), workload("other", "10.0.9.9")],
  };
}

test("routes stay when the endpoints of their services change, and call the new ones", () => {
  const worker = new TestWorker();
  const backends = [{ service: { name: "n/s.n", port: 80 } }];
  const extAuthz = { service: { name: "n/s.n", port: 80 }, protocol: { http: {} } };
  const routes = [
    { name: "a", backends },
    { name: "b", backends: [{ service: { name: "n/other.n", port: 80 } }] },
    { name: "c", policies: { extAuthz } },
  ];
  const before = worker.apply(configurationOf(routes, discovered("10.0.0.1")));
  const targets = (): string[] =>
    worker.endpoints
      .stats()
      .map(({ target }) => target)
      .sort();
  const endpointsOf = (name: string) =>
    routeTo(before, name).backends[0]?.balancer?.endpoints.map(({ pool }) => pool.name);
  assert.deepEqual(endpointsOf("a"), ["10.0.0.1:8080"]);
  const after = worker.apply(
    configurationOf([...routes, { name: "new", backends }], discovered("10.0.0.2", "10.0.0.3")),
  );
  for (const name of ["a", "b", "c"]) assert.equal(routeTo(after, name), routeTo(before, name));
  assert.deepEqual(endpointsOf("a"), ["10.0.0.2:8080", "10.0.0.3:8080"]);
  assert.deepEqual(endpointsOf("b"), ["10.0.9.9:8080"]);
  assert.equal(routeTo(after, "new").backends[0]?.balancer, routeTo(after, "a").backends[0]?.balancer);
  assert.deepEqual(targets(), ["10.0.0.2:8080", "10.0.0.3:8080", "10.0.9.9:8080", "127.0.0.1:9"]);
  worker.apply(configurationOf(routes, discovered()));
  assert.deepEqual(endpointsOf("a"), []);
  assert.deepEqual(targets(), ["10.0.9.9:8080", "127.0.0.1:9"]);
});

test("a configuration whose compilation stops after any step moves no calls and holds no endpoints", () => {
  const worker = new TestWorker();
  const routes = [{ name: "a", backends: [{ service: { name: "n/s.n", port: 80 } }] }];
  const { backends } = routeTo(worker.apply(configurationOf(routes, discovered("10.0.0.1"))), "a");
  const next = configurationOf([...routes, { name: "b" }], discovered("10.0.0.2"));
  for (let taken = 0, done = false; !done; taken++) {
    const steps = worker.steps(next);
    for (let i = 0; i < taken; i++) {
      const step = steps.next();
      if (step.done === true) worker.endpoints.release(step.value.endpoints);
      done = step.done === true;
    }
    steps.return(undefined as never);
    assert.deepEqual(
      backends[0]?.balancer?.endpoints.map(({ pool }) => pool.name),
      ["10.0.0.1:8080"],
    );
    assert.deepEqual(
      worker.endpoints.stats().map(({ target }) => target),
      ["10.0.0.1:8080"],
    );
  }
});

test("a route whose connections go through a proxy of a service is compiled again when the proxies change", () => {
  const worker = new TestWorker();
  const backends = [
    { host: "127.0.0.1:9", policies: { backendTunnel: { proxy: { service: { name: "n/s.n", port: 80 } } } } },
  ];
  const routes = [{ name: "a", backends }];
  const proxiesOf = (generation: Generation) =>
    routeTo(generation, "a").backends[0]?.balancer?.endpoints.map(({ pool }) => pool.target.tunnel?.proxies);
  const first = worker.apply(configurationOf(routes, discovered("10.0.0.1")));
  const same = worker.apply(configurationOf([...routes, { name: "b" }], discovered("10.0.0.1")));
  assert.equal(routeTo(same, "a"), routeTo(first, "a"));
  const after = worker.apply(configurationOf(routes, discovered("10.0.0.2")));
  assert.deepEqual(proxiesOf(after), [[{ host: "10.0.0.2", port: 8080, discovered: true }]]);
});

test("a route that others delegate to has their new policies after a reload", async () => {
  const groups = (body: string): PackedIr =>
    configurationOf(
      [
        {
          name: "a",
          policies: { responseHeaderModifier: { set: { "x-parent": body } } },
          backends: [{ routeGroup: "g" }],
        },
      ],
      {
        routeGroups: [
          { name: "g", routes: [{ name: "leaf", policies: { directResponse: { status: 200, body: "" } } }] },
        ],
      },
    );
  await using plane = new TestPlane();
  await plane.apply(groups("one"));
  const { port } = (plane.plane.tasks() as { port: number }[])[0] ?? {};
  const send = async (): Promise<string | null> =>
    (await fetch(`http://127.0.0.1:${port}/a`, { headers: { connection: "close" } })).headers.get("x-parent");
  assert.equal(await send(), "one");
  await plane.apply(groups("two"));
  assert.equal(await send(), "two");
});

test("a replaced or dropped configuration is released completely", async () => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  await using plane = new TestPlane();
  const policies = {
    extAuthz: { host: "127.0.0.1:3", protocol: { http: {} } },
    requestMirror: { backend: { host: "127.0.0.1:3" }, percentage: 0.5 },
    apiKey: { keys: [{ key: "k" }] },
    localRateLimit: [{ maxTokens: 1, tokensPerFill: 1, fillInterval: "1s" }],
    transformations: { request: { set: { "x-a": "request.path" } } },
    retry: { attempts: 1, codes: [503] },
    cors: { allowOrigins: ["https://a.test"] },
    csrf: {},
  };
  const routes = Array.from({ length: 50 }, (_, i) => ({ name: `r${i}`, policies }));
  const replaced: WeakRef<object>[] = [];
  const apply = async (version: number): Promise<void> => {
    const configuration = configurationOf([...routes, { name: "changed", port: 20 + version }]);
    replaced.push(new WeakRef(configuration), new WeakRef(configuration.frame.binds[0]?.frontend ?? configuration));
    await plane.apply(configuration);
  };
  for (let version = 0; version < 5; version++) await apply(version);
  // Awaited values are released in the next turn.
  await new Promise((resolve) => setImmediate(resolve));
  collect();
  const kept = replaced.slice(0, -2).filter((each) => each.deref() !== undefined);
  assert.equal(kept.length, 0);
});

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { after, before, suite, test } from "node:test";
import type { Explanation } from "../../../src/rehearsal/explanation.ts";
import { TestGateway } from "../../helpers/gateway.ts";
import { TGCTL } from "../../helpers/programs.ts";
import { closedPort, Upstream } from "../trace/support.ts";

suite("explanations of a running gateway", () => {
  let upstream: Upstream;
  let gateway: TestGateway;

  const config = (status: number): object => ({
    binds: [
      {
        port: 0,
        listeners: [
          {
            routes: [
              { name: "all", backends: [{ host: upstream.address }] },
              {
                name: "limited",
                matches: [{ path: { pathPrefix: "/limited" } }],
                policies: { localRateLimit: [{ maxTokens: 1, fillInterval: "1h", key: "request.headers['x-user']" }] },
                backends: [{ host: upstream.address }],
              },
              {
                name: "direct",
                matches: [{ path: { exact: "/direct" } }],
                policies: { directResponse: { status } },
              },
            ],
          },
        ],
      },
    ],
  });

  before(async () => {
    upstream = await Upstream.start();
    gateway = await TestGateway.start(config(418));
  });
  after(async () => {
    await gateway.stop();
    await upstream.close();
  });

  async function tgctl(args: readonly string[]): Promise<{ code: number; stdout: string; stderr: string }> {
    const { port } = new URL(gateway.url("admin"));
    const child = spawn(TGCTL, ["explain", "--local", "--proxy-admin-port", port, ...args]);
    const closed = once(child, "close");
    const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
    const [code] = (await closed) as [number];
    return { code, stdout, stderr };
  }

  const ask = (body: string): Promise<Response> => fetch(`${gateway.url("admin")}/explain`, { method: "POST", body });
  async function explained(request: object): Promise<Explanation> {
    const response = await ask(JSON.stringify({ request }));
    assert.equal(response.status, 200);
    return (await response.json()) as Explanation;
  }
  const url = (path: string): string => `http://shop.test:${gateway.port()}${path}`;

  test("the tree of a request, and exit code 1 for one that the gateway refuses", async () => {
    const passed = await tgctl(["--", url("/other")]);
    assert.deepEqual([passed.code, passed.stderr], [0, ""]);
    assert.match(passed.stdout, /^GET \/other → 200 · route default\/all · endpoint /);
    assert.match(passed.stdout, /\n {4}✗ route limited {2}path: /);
    const refused = await tgctl(["-o", "json", "--", "POST", url("/direct")]);
    assert.equal(refused.code, 1);
    const { generation, outcomes } = JSON.parse(refused.stdout) as Explanation;
    assert.deepEqual([generation, outcomes[0]?.status, outcomes[0]?.refused], [1, 418, true]);
    assert.equal(upstream.connections, 0);
  });

  test("tokens that clients have taken are missing in a rehearsal, which takes none", async () => {
    const headers = { "x-user": "me" };
    const request = { url: url("/limited"), headers };
    for (let i = 0; i < 3; i++) assert.equal((await explained(request)).outcomes[0]?.status, 200);
    const reach = () => fetch(`http://localhost:${gateway.port()}/limited`, { headers });
    assert.equal((await reach()).status, 200);
    assert.equal((await explained(request)).outcomes[0]?.status, 429);
    assert.equal((await explained({ ...request, headers: { "x-user": "you" } })).outcomes[0]?.status, 200);
    assert.equal((await reach()).status, 429);
  });

  test("the configuration in effect is the one that is explained", async () => {
    assert.equal((await explained({ url: url("/direct") })).outcomes[0]?.status, 418);
    assert.equal(await gateway.reconfigure(config(410)), "applied");
    const { generation, outcomes } = await explained({ url: url("/direct") });
    assert.deepEqual([generation, outcomes[0]?.status], [2, 410]);
  });

  test("endpoints: which is chosen, their health and load in the workers, and why one is left out", async () => {
    const ports = { "80": Number(upstream.port) };
    const workload = (uid: string, port: number): object => ({
      ...{ uid, name: uid, namespace: "shop", workloadIps: ["127.0.0.1"] },
      services: { "shop/cart.test": { "80": port } },
    });
    const health = { eviction: { duration: "1h" } };
    const backend = { service: { name: "shop/cart.test", port: 80 }, policies: { health } };
    const closed = await closedPort();
    assert.equal(
      await gateway.reconfigure({
        binds: [{ port: 0, listeners: [{ routes: [{ name: "all", backends: [backend] }] }] }],
        services: [{ name: "cart", namespace: "shop", hostname: "cart.test", ports }],
        workloads: [workload("a", Number(upstream.port)), workload("b", closed)],
      }),
      "applied",
    );
    // Sooner or later the balancer tries the endpoint that is down, and evicts it.
    const dump = async (): Promise<string> => (await fetch(`${gateway.url("admin")}/config_dump`)).text();
    for (let i = 0; i < 100 && !/"evictedUntil": "/.test(await dump()); i++)
      await fetch(`http://localhost:${gateway.port()}/`);
    const { stdout } = await tgctl(["--", url("/")]);
    const lines = stdout.split("\n");
    const at = lines.findIndex((line) => line.startsWith("✓ endpoint "));
    assert.match(
      lines[at] ?? "",
      /^✓ endpoint 127\.0\.0\.1:\d+ {2}of shop\/cart\.test:80, status 200, health 1\.00, 0 in progress, \d+\.\d ms$/,
    );
    const down = `127.0.0.1:${closed}`;
    assert.match(
      lines[at + 1] ?? "",
      new RegExp(`^ {4}✗ endpoint ${down} {2}evicted for \\d+ms, health 0\\.\\d\\d, 0 in progress`),
    );
  });

  test("nothing that a rehearsal does reaches a backend, a bucket, a metric or a log", async () => {
    const host = { host: upstream.address };
    const policies = {
      extAuthz: { ...host, protocol: { http: {} } },
      remoteRateLimit: {
        ...host,
        domain: "d",
        descriptors: [{ entries: [{ key: "k", value: '"v"' }], type: "requests" }],
      },
      localRateLimit: [{ maxTokens: 2, fillInterval: "1h" }],
      requestMirror: { backend: host, percentage: 1 },
      retry: { attempts: 2, backoff: "1ms", codes: [503] },
    };
    const health = { eviction: { duration: "1h" } };
    const backends = [{ ...host, policies: { health } }, { host: "nowhere.invalid:80" }];
    const routes = [
      { name: "all", policies, backends },
      {
        name: "limited",
        matches: [{ path: { exact: "/limited" } }],
        policies: { localRateLimit: policies.localRateLimit },
        backends: [host],
      },
    ];
    assert.equal(await gateway.reconfigure({ binds: [{ port: 0, listeners: [{ routes }] }] }), "applied");
    const read = async (server: "admin" | "stats", path: string): Promise<string> =>
      (await fetch(`${gateway.url(server)}${path}`, { headers: { connection: "close" } })).text();
    const state = async () => ({
      lines: gateway.lines.length,
      connections: upstream.connections,
      // Without what the process itself changes, such as its memory.
      metrics: (await read("stats", "/metrics"))
        .split("\n")
        .filter((line) => /^tracegate_\w*(request|connect|limit|endpoint|upstream|retr|mirror)/.test(line)),
      endpoints: (await read("admin", "/config_dump")).match(/"(totalRequests|timesEjected|evictedUntil)": [^,]*/g),
    });
    // The thread is running from here on.
    const { outcomes } = await explained({ url: url("/") });
    assert.deepEqual(
      outcomes.map(({ given, status }) => [Object.keys(given), status]),
      [
        [["backend", "extAuthz", "remoteRateLimit"], 200],
        [["backend", "extAuthz", "remoteRateLimit"], 200],
        [["extAuthz"], 403],
        [["extAuthz", "remoteRateLimit"], 429],
      ],
    );
    const before = await state();
    assert.ok(before.metrics.length > 5 && before.endpoints !== null);
    for (const assume of [{}, { response: 503 }, { extAuthz: "deny" }, { remoteRateLimit: "over" }]) {
      const response = await fetch(`${gateway.url("admin")}/explain`, {
        method: "POST",
        headers: { connection: "close" },
        body: JSON.stringify({ request: { url: url("/"), method: "POST", body: "k=v" }, assume }),
      });
      assert.equal(response.status, 200, await response.text());
    }
    for (let i = 0; i < 5; i++)
      assert.equal((await explained({ url: url("/limited") })).outcomes[0]?.status, 200, "both tokens are there");
    assert.deepEqual(await state(), before);
    const statuses = [];
    for (let i = 0; i < 3; i++) statuses.push((await fetch(`http://localhost:${gateway.port()}/limited`)).status);
    assert.deepEqual(statuses, [200, 200, 429]);
    assert.equal(await gateway.reconfigure(config(410)), "applied");
  });

  test("another configuration is explained without taking effect, and cannot read files or variables", async () => {
    const file = join(gateway.folder, "other.yaml");
    const other = async (text: string) => {
      await writeFile(file, text);
      return tgctl(["--config", file, "-o", "json", "--", "http://shop.test/"]);
    };
    const direct = (body: string): string =>
      `binds: [{port: 80, listeners: [{routes: [{policies: {directResponse: {status: 207, body: ${body}}}}]}]}]`;
    const { code, stdout, stderr } = await other(direct("hello"));
    assert.deepEqual([code, stderr], [0, ""]);
    const { generation, outcomes } = JSON.parse(stdout) as Explanation;
    assert.deepEqual([generation, outcomes[0]?.status], [null, 207]);
    const route = outcomes[0]?.steps.find(({ kind }) => kind === "route");
    assert.deepEqual(route?.origin?.place, { file, line: 1, column: 42 });
    const unnamed = await ask(JSON.stringify({ config: "binds: 1", request: { url: "http://a/" } }));
    assert.match(await unnamed.text(), /configuration:1:8: error: /);
    const invalid = await other("binds: [{port: 80, prot: 80, listeners: []}]");
    assert.equal(invalid.code, 1);
    const first = `Error: the configuration is not valid\n${file}:1:20: error: binds[0].prot: unknown field`;
    assert.ok(invalid.stderr.startsWith(first), invalid.stderr);
    const variable = await other(direct("$HOME"));
    assert.match(variable.stderr, /other\.yaml:1:\d+: error: .*HOME/);
    const tls = "{cert: /etc/hostname, key: /etc/hostname}";
    const files = await other(`binds: [{port: 443, listeners: [{protocol: HTTPS, tls: ${tls}, routes: []}]}]`);
    assert.match(files.stderr, /reads no files for an explanation; use tracegate explain -f FILE/);
  });

  test("what is wrong with a question is said with its place and how to write it", async () => {
    const example = 'write {"request": {"url": "http://shop.example/cart"}, "assume": {"extAuthz": "deny"}}';
    for (const [body, message, hint] of [
      [{ reqest: {} }, "reqest: unknown field", example],
      [{ request: { url: "http://a", headers: { x: 1 } } }, "request.headers: not what a request has there", undefined],
      [
        { request: { url: "http://a" }, config: "", configName: 1 },
        "configName: expected a text",
        'write {"config": "binds: …", "configName": "new.yaml", "request": {…}}',
      ],
      [{ request: { url: "ftp://a" } }, "the scheme ftp cannot be explained", undefined],
      [
        { request: { url: "http://a:1/" } },
        "the configuration has no bind for http on port 1",
        `write http://a:${gateway.port()}`,
      ],
      [
        { request: { url: url("/") }, assume: { extAuthz: "deny" } },
        "nothing depends on the assumption extAuthz",
        "leave out extAuthz=deny, or check which route the request gets",
      ],
    ] as const) {
      const response = await ask(JSON.stringify(body));
      const { error } = (await response.json()) as { error: { message: string; hint: string } };
      assert.deepEqual([response.status, error.message], [400, message]);
      if (hint !== undefined) assert.equal(error.hint, hint);
    }
    const noJson = await ask("{");
    assert.deepEqual([noJson.status, (await noJson.text()).split(";")[0]], [400, "the body is not JSON"]);
    assert.equal((await ask("x".repeat(4 * 1024 * 1024 + 1))).status, 413);
    const { code, stderr } = await tgctl(["--", "http://a:1/"]);
    assert.equal(code, 2);
    assert.match(stderr, /^Error: the configuration has no bind for http on port 1\nTry: write http:\/\/a:\d+\n$/);
  });
});

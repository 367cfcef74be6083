import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { type LogLine, proxyTo, TestGateway } from "../../helpers/gateway.ts";
import { call, closedPort, traceOf, Upstream } from "../trace/support.ts";

const SECRET = "debug-secret-value";

suite("the log at the levels debug and trace", () => {
  let upstream: Upstream;
  let gateway: TestGateway;

  before(async () => {
    upstream = await Upstream.start();
    const backends = [{ host: `localhost:${upstream.port}`, dns: { mode: "first" } }];
    const health = { eviction: { duration: "1s" } };
    const routes = [
      {
        name: "keyed",
        matches: [{ path: { exact: "/keyed" } }],
        policies: { apiKey: { keys: [{ key: SECRET }], mode: "strict" } },
        backends,
      },
      {
        name: "retried",
        matches: [{ path: { exact: "/retried" } }],
        policies: { retry: { attempts: 1, codes: [] } },
        backends: [{ host: `127.0.0.1:${await closedPort()}`, policies: { health } }],
      },
    ];
    gateway = await TestGateway.start({
      ...proxyTo(upstream.address),
      config: { workerThreads: 1, dns: { lookupFamily: "V4Only" } },
      binds: [{ port: 0, listeners: [{ routes }] }],
    });
  });
  after(async () => {
    await gateway.stop();
    await upstream.close();
  });

  const setLevel = async (directives: string): Promise<void> => {
    const query = new URLSearchParams({ level: directives, reset: "" });
    const answer = await fetch(`${gateway.url("admin")}/logging?${query}`, { method: "POST" });
    assert.equal(answer.status, 200);
  };

  /** The log lines of one request, up to that of the access log. */
  async function linesOf(id: string, path: string, key = SECRET): Promise<LogLine[]> {
    const from = gateway.lines.length;
    await call(gateway.port(), { path, headers: { "x-request-id": id, authorization: `Bearer ${key}` } });
    const logged = (): boolean => gateway.lines.slice(from).some(({ scope }) => scope === "request");
    await gateway.until(logged, "the line of the access log");
    return gateway.lines.slice(from);
  }

  const text = ({ scope, message }: LogLine): string => `${scope} ${message}`;
  const of = (lines: readonly LogLine[], id: string): LogLine[] => lines.filter(({ request }) => request === id);

  test("debug: policy outcomes, pool, DNS, connect, with the id of the request", async () => {
    await setLevel("debug");
    const first = await linesOf("id-1", "/keyed");
    assert.ok(first.some(({ scope, host }) => scope === "upstream::dns" && host === "localhost"));
    assert.deepEqual(of(first, "id-1").map(text), [
      "proxy::match route",
      "policies api_key: the API key is valid",
      "upstream call",
      "upstream response",
      "proxy finished",
    ]);
    const miss = of(first, "id-1").find(({ message }) => message === "response");
    assert.equal(miss?.pool, "miss");
    assert.match(`${miss?.dns} ${miss?.connect} ${miss?.firstByte}`, /^[\d.]+s [\d.]+s [\d.]+s$/);
    const hit = of(await linesOf("id-2", "/keyed"), "id-2").find(({ message }) => message === "response");
    assert.equal(hit?.pool, "hit");
    const denied = of(await linesOf("id-3", "/keyed", "wrong"), "id-3").map(text);
    assert.equal(
      denied[1],
      'policies api_key: the API key in the header authorization after "Bearer " is not one of `keys`',
    );
  });

  test("debug: failures, evictions and retries", async () => {
    await setLevel("debug");
    const lines = of(await linesOf("id-4", "/retried"), "id-4").map(text);
    for (const start of ["upstream failure", "policies health: evicts 127.0.0.1:", "policies retry: retry 1 in "])
      assert.ok(
        lines.some((line) => line.startsWith(start)),
        `${start} in ${lines.join("; ")}`,
      );
  });

  test("one module alone, snapshots at trace, and nothing at info", async () => {
    await setLevel("info,policies=debug");
    const scopes = of(await linesOf("id-5", "/keyed"), "id-5").map(({ scope }) => scope);
    assert.deepEqual(scopes, ["policies"]);
    await setLevel("info,policies=trace");
    const effective = of(await linesOf("id-10", "/keyed"), "id-10").filter(({ message }) => message === "effective");
    assert.deepEqual(
      effective.map(({ phase, policies }) => `${phase}: ${policies}`),
      ["gateway: ", "route: apiKey", "backend: "],
    );
    await setLevel("info,proxy=trace");
    const stages = of(await linesOf("id-6", "/keyed"), "id-6").flatMap(({ stage }) => stage ?? []);
    assert.ok(stages.includes("initial request") && stages.includes("final response"), stages.join());
    await setLevel("info");
    assert.deepEqual(of(await linesOf("id-7", "/keyed"), "id-7"), []);
  });

  test("a watcher with reveal=true puts no secrets into the log", async () => {
    await setLevel("trace");
    const headers = { "x-request-id": "id-8", authorization: `Bearer ${SECRET}` };
    const events = await traceOf(gateway, () => call(gateway.port(), { path: "/keyed", headers }), { reveal: true });
    assert.match(JSON.stringify(events), new RegExp(SECRET));
    // Without reveal the same request is both traced and logged.
    await traceOf(gateway, () =>
      call(gateway.port(), { path: "/keyed", headers: { ...headers, "x-request-id": "id-9" } }),
    );
    await gateway.until(() => of(gateway.lines, "id-9").some(({ message }) => message === "finished"), "its lines");
    assert.deepEqual(
      of(gateway.lines, "id-8").filter(({ scope }) => scope !== "request"),
      [],
    );
  });

  test("no line shows a secret", () => {
    assert.doesNotMatch(JSON.stringify(gateway.lines), new RegExp(SECRET));
  });
});

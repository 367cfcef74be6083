/** Traces of pods: real gateways whose ports an API server forwards. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { request } from "node:http";
import { after, before, suite, type TestContext, test } from "node:test";
import { TestGateway } from "../../../test/helpers/gateway.ts";
import { ofGateway, testCluster } from "../../../test/helpers/kube/tgctl.ts";
import type { ProxyAdmin } from "../proxy/admin.ts";
import { replicaItems } from "../proxy/trace-replicas.ts";
import { CliError } from "../runner/errors.ts";
import { type TraceItem, type TraceRecord, toRecord } from "../trace/source.ts";

const CONFIG = {
  binds: [{ port: 0, listeners: [{ routes: [{ name: "all", policies: { directResponse: { status: 200 } } }] }] }],
};

suite("two pods of a Gateway", () => {
  const pods = new Map<string, TestGateway>();
  before(async () => {
    for (const name of ["web-1", "web-2"]) pods.set(name, await TestGateway.start(CONFIG));
  });
  after(async () => {
    for (const pod of pods.values()) await pod.stop();
  });

  async function cluster(t: TestContext) {
    const cluster = await testCluster(t);
    cluster.gateway("web");
    for (const [name, gateway] of pods) {
      cluster.pod(name, { labels: ofGateway("web") });
      cluster.connect(name, 15000, Number(new URL(gateway.url("admin")).port));
      cluster.connect(name, 80, gateway.port());
    }
    const trace = (...more: string[]) => cluster.tgctl("proxy", "trace", "gateway/web", "-n", "shop", ...more);
    return { ...cluster, trace };
  }

  /** Sends requests to this pod until the trace is complete. */
  async function seen<T>(outcome: Promise<T>, name: string): Promise<T> {
    let result: T | undefined;
    outcome.then((value) => {
      result = value;
    });
    while (result === undefined) {
      const call = request({ host: "127.0.0.1", port: pods.get(name)?.port() ?? 0, path: `/${name}` }).end();
      const [response] = await once(call, "response");
      response.resume();
      await once(response, "end");
    }
    return result;
  }

  test("as text, a trace of several pods says which one it is from", async (t) => {
    const { trace } = await cluster(t);
    const { stdout } = await seen(trace("-o", "text"), "web-2");
    assert.match(stdout, /^gateway\/web · web-2\.shop\n/);
  });

  test("a URL is sent through a forwarded port, and only that request is traced", async (t) => {
    const { trace } = await cluster(t);
    const { code, stdout, stderr } = await trace("--raw", "--port", "80", "--", "http://shop.example/x", "-X", "PUT");
    assert.deepEqual([code, stderr], [0, ""]);
    const lines = stdout.trim().split("\n");
    assert.match(lines[1] ?? "", /"method":"PUT".*"host":"shop.example"/);
    assert.match(lines.at(-1) ?? "", /"requestFinished","status":200/);
  });

  for (const name of ["web-1", "web-2"]) {
    test(`without a URL the first pod that sees a request wins: ${name}`, async (t) => {
      const { trace } = await cluster(t);
      const { code, stdout, stderr } = await seen(trace("--raw"), name);
      assert.deepEqual([code, stderr], [0, ""]);
      assert.match(stdout.split("\n")[1] ?? "", new RegExp(`"path":"/${name}"`));
      assert.equal(stdout.match(/"requestStarted"/g)?.length, 1);
    });
  }

  test("--follow shows the requests of all pods, each with the name of its pod", async (t) => {
    const { trace } = await cluster(t);
    let names: ReadonlySet<string | undefined>;
    // The stream of one pod may have begun, and shown all 40 requests, before that of the other has.
    do {
      const following = trace("--follow", "--count", "40");
      await Promise.all(["web-1", "web-2"].map((name) => seen(following, name)));
      const { code, stdout, stderr } = await following;
      assert.deepEqual([code, stderr], [0, "40 requests followed\n"]);
      const lines = stdout.trimEnd().split("\n");
      assert.equal(lines.length, 40);
      names = new Set(lines.map((line) => /^\S+ {2}#\d+ {2}(web-[12]) {2}GET http:\S+\/\1 → 200 in /.exec(line)?.[1]));
      assert.ok(!names.has(undefined), stdout);
    } while (names.size < pods.size);
  });

  test("without a URL, a Gateway whose only pod cannot start is an error that says why", async (t) => {
    const { tgctl, gateway, pod } = await testCluster(t);
    gateway("web");
    const containers = [{ image: "tracegate:9", restartCount: 4 }];
    pod("web-1", { labels: ofGateway("web"), ready: false, containers });
    const { code, stderr } = await tgctl("trace", "gateway/web", "-n", "shop", "--raw");
    assert.equal(code, 1);
    assert.match(
      stderr,
      /^Error: no pod of gateway\/web is ready: pod web-1.shop crashes\nTry: kubectl logs web-1 -n shop --previous\n/,
    );
  });

  test("--pod traces that pod only", async (t) => {
    const { trace, server } = await cluster(t);
    const { stdout } = await seen(trace("--raw", "--pod", "web-2"), "web-2");
    assert.match(stdout, /"path":"\/web-2"/);
    assert.deepEqual(
      server.received.filter(({ path }) => path.includes("web-1")),
      [],
    );
  });

  test("a port without a listener: the error lists the ports of listeners", async (t) => {
    const { trace } = await cluster(t);
    const { code, stderr } = await trace("--raw", "--port", "81", "--", "http://shop.example/");
    assert.equal(code, 3);
    assert.match(
      stderr,
      /^Error: failure running port forward process: port 81 of pod web-1.shop: connection refused\n/,
    );
    assert.match(stderr, new RegExp(`\nTry: its listeners use ports ${pods.get("web-1")?.port()}\n`));
  });

  test("an expression that does not compile is an error, not a wait", async (t) => {
    const { trace } = await cluster(t);
    const { code, stderr } = await trace("--raw", "--expression", "x x");
    assert.equal(code, 1);
    assert.match(stderr, /^Error: trace stream returned 400: .*\nTry: correct the CEL text of --expression\n/s);
  });
});

/** A replica whose trace the test feeds. */
function replica(name: string) {
  const events: (TraceRecord | Error)[] = [];
  let wake = Promise.withResolvers<void>();
  const opened: AbortSignal[] = [];
  const waited = new Map<number, PromiseWithResolvers<void>>();
  const openings = (count: number) => {
    const known = waited.get(count) ?? Promise.withResolvers<void>();
    waited.set(count, known);
    if (opened.length >= count) known.resolve();
    return known.promise;
  };
  return {
    proxy: { name } as ProxyAdmin,
    opened,
    openings,
    async open(signal: AbortSignal): Promise<AsyncGenerator<TraceRecord>> {
      opened.push(signal);
      for (const [count, waiting] of waited) if (opened.length >= count) waiting.resolve();
      return (async function* () {
        for (;;) {
          const next = events.shift();
          if (next instanceof Error) throw next;
          if (next !== undefined) yield next;
          else {
            await wake.promise;
            wake = Promise.withResolvers();
          }
          if (next?.event.last === true) return;
        }
      })();
    },
    send(...more: (TraceRecord | Error)[]): void {
      events.push(...more);
      wake.resolve();
    },
  };
}

const EVENT = toRecord('{"n":1}');
const LAST = toRecord('{"last":true}');

test("replicas that start while the trace waits are watched too, and losers are closed", async () => {
  const [a, b] = [replica("a"), replica("b")];
  const all = new Map([a, b].map((each) => [each.proxy.name, each]));
  let serving = [a.proxy];
  const items = replicaItems({
    name: "gateway/web",
    serving: async () => serving,
    open: (proxy, signal) => all.get(proxy.name)?.open(signal) ?? Promise.reject(new Error("unknown")),
    signal: new AbortController().signal,
  });
  const got: TraceItem[] = [];
  const done = (async () => {
    for await (const item of items) got.push(item);
  })();
  await a.openings(1);
  // The pod stops: its stream ends without an event, and it is opened again while the pod still serves.
  a.send(new CliError("failure", "the trace stream ended before any event"));
  await a.openings(2);
  serving = [a.proxy, b.proxy];
  await b.openings(1);
  b.send(EVENT, LAST);
  await done;
  assert.deepEqual(
    got.filter(({ kind }) => kind !== "progress"),
    [{ kind: "source", text: "gateway/web · b" }, EVENT, LAST],
  );
  assert.equal(a.opened.at(-1)?.aborted, true);
  const progress = got.filter(({ kind }) => kind === "progress").map((item) => "text" in item && item.text);
  assert.ok(progress.includes("waiting for the next request at a"), progress.join());
});

test("an API server that fails while the trace waits does not end it", async () => {
  const a = replica("a");
  let calls = 0;
  const items = replicaItems({
    name: "gateway/web",
    serving: async () => {
      if (calls++ === 0) return [a.proxy];
      a.send(EVENT, LAST);
      throw new CliError("unreachable", "gone");
    },
    open: (_proxy, signal) => a.open(signal),
    signal: new AbortController().signal,
  });
  const got: TraceItem[] = [];
  for await (const item of items) got.push(item);
  assert.deepEqual(got.slice(-2), [EVENT, LAST]);
});

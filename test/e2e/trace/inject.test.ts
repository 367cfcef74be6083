import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { invoke } from "../../../src/cli/fixtures/invoke.ts";
import type { TraceEvent } from "../../../src/trace/events.ts";
import { proxyTo, TestGateway } from "../../helpers/gateway.ts";
import { admin, call, messageOf, stateAt, traceOf, Upstream } from "./support.ts";

const TOKEN_HEADER = "x-tracegate-trace-token";

suite("inject mode: a trace shows the request that tgctl sends", () => {
  let upstream: Upstream;
  let gateway: TestGateway;
  let port: number;
  let adminPort: string;
  /** Names of the header fields that the upstream has received. */
  const received = new Set<string>();

  before(async () => {
    upstream = await Upstream.start();
    upstream.on("/seen", (request, response) => {
      for (const name of Object.keys(request.headers)) received.add(name);
      response.end();
    });
    gateway = await TestGateway.start({ ...proxyTo(upstream.address), config: { workerThreads: 2 } });
    port = gateway.port();
    adminPort = new URL(gateway.url("admin")).port;
  });
  after(async () => {
    await gateway.stop();
    await upstream.close();
  });

  async function inject(url: string, ...curl: string[]) {
    const target = ["--local", "--proxy-admin-port", adminPort, "--port", String(port)];
    const { code, stdout, stderr } = await invoke(["proxy", "trace", "--raw", ...target, "--", url, ...curl]);
    return { code, stderr, events: lines(stdout) };
  }

  /** One client that sends requests without pause until `act` is done. */
  async function besideBusyClient(act: () => Promise<void>): Promise<void> {
    let done = false;
    const busy = (async () => {
      while (!done) await call(port, { path: "/busy" });
    })();
    try {
      await act();
    } finally {
      done = true;
      await busy;
    }
  }

  test("it always shows its own request, beside a busy client", async () => {
    await besideBusyClient(async () => {
      for (let round = 0; round < 20; round++) {
        const { code, stderr, events } = await inject(`http://a.test/mine/${round}`);
        assert.equal(code, 0, stderr);
        assert.equal(stateAt(events, "initial request").request?.path, `/mine/${round}`);
      }
    });
  });

  test("two users at the same time: each gets the trace of their own request", async () => {
    for (let round = 0; round < 5; round++) {
      const users = ["/alice", "/bob"];
      const traces = await Promise.all(users.map((path) => inject(`http://a.test${path}`)));
      assert.deepEqual(
        traces.map(({ events }) => stateAt(events, "initial request").request?.path),
        users,
      );
    }
  });

  test("trace, backend and log do not contain the token", async () => {
    const { events } = await inject("http://a.test/seen");
    assert.equal(messageOf(events, "requestFinished").status, 200);
    assert.doesNotMatch(JSON.stringify(events), /trace-token/i);
    // Without a watcher, the field is removed as well.
    await call(port, { path: "/seen", headers: { [TOKEN_HEADER]: "t".repeat(32) } });
    assert.deepEqual(
      [...received].filter((name) => name.includes("trace-token")),
      [],
    );
    assert.doesNotMatch(JSON.stringify(gateway.lines), /trace-token|token=/);
  });

  test("a watcher without a token traces a request with a token only if no watcher has that token", async () => {
    const signal = AbortSignal.timeout(30_000);
    const token = "a".repeat(32);
    const anyone = admin(gateway).trace({ signal });
    await anyone.opened;
    const headers = { [TOKEN_HEADER]: token };
    const owned = await traceOf(gateway, () => call(port, { path: "/owned", headers }), { token });
    assert.equal(stateAt(owned, "initial request").request?.path, "/owned");
    // The token has been used.
    await call(port, { path: "/next", headers });
    const events: TraceEvent[] = [];
    for await (const { raw } of anyone) events.push(JSON.parse(raw) as TraceEvent);
    assert.equal(stateAt(events, "initial request").request?.path, "/next");
  });

  test("a token that could be guessed is rejected", async () => {
    for (const token of ["short", "x".repeat(200), "with space and more than 22"]) {
      const answer = await fetch(`${gateway.url("admin")}/debug/trace?${new URLSearchParams({ token })}`);
      assert.equal(answer.status, 400);
      const text = await answer.text();
      assert.match(text, /^invalid token: expected 22 to 128 letters, digits, - and _/);
      assert.ok(!text.includes(token));
    }
  });
});

function lines(text: string): TraceEvent[] {
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as TraceEvent);
}

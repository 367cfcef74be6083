import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { after, before, suite, test } from "node:test";
import { GatewayProcess, type LogLine, proxyTo } from "../../helpers/gateway.ts";
import { admin, call, rawClient, Upstream } from "../trace/support.ts";

suite("shutdown", () => {
  let upstream: Upstream;

  before(async () => {
    upstream = await Upstream.start();
  });
  after(() => upstream.close());

  for (const [name, begin] of [
    ["SIGTERM", async (gateway: GatewayProcess) => gateway.process.kill("SIGTERM")],
    ["SIGINT", async (gateway: GatewayProcess) => gateway.process.kill("SIGINT")],
    [
      "POST /quitquitquit",
      async (gateway: GatewayProcess) => assert.equal(await admin(gateway).quit(), "shutdown now\n"),
    ],
  ] as const)
    test(`${name}: the request in progress is served, idle and new connections are closed, exit code 0`, async () => {
      await using gateway = await start();
      const port = gateway.port();
      const idle = await rawClient(port, "GET /idle HTTP/1.1\r\nHost: a.test\r\n\r\n");
      await once(idle, "data");
      const idleClosed = once(idle, "close");
      const hanging = upstream.hang("/slow");
      const busy = await rawClient(port, "GET /slow HTTP/1.1\r\nHost: a.test\r\n\r\n");
      const { response } = await hanging;

      const ended = once(gateway.process, "close");
      await begin(gateway);
      await idleClosed;
      await refused(port);
      assert.deepEqual(await readiness(gateway), [503, "draining\n"]);
      assert.equal((await admin(gateway).configStatus()).generation, 1);

      response.end("at last");
      let text = "";
      for await (const chunk of busy) text += String(chunk);
      assert.match(text, /^HTTP\/1\.1 200 .*\r\nconnection: close\r\n.*at last$/s);
      assert.deepEqual(await ended, [0, null]);
      const line = logged(gateway, "/slow");
      assert.equal(line?.["http.status"], 200, "the last line of the access log is not lost");
    });

  for (const [first, second, code] of [
    ["SIGINT", "SIGINT", 130],
    ["SIGTERM", "SIGTERM", 143],
    ["SIGINT", "SIGTERM", 143],
  ] as const)
    test(`until the minimum deadline everything is served; ${second} after ${first} exits at once`, async () => {
      await using gateway = await start({ connectionMinTerminationDeadline: "60s" });
      const ended = once(gateway.process, "close");
      assert.deepEqual(await readiness(gateway), [200, "ready\n"]);
      gateway.process.kill(first);
      await gateway.until(() => gateway.lines.some(({ message }) => message === "draining"), "the drain");
      const answer = await call(gateway.port(), { path: "/x" });
      assert.equal(answer.status, 200);
      assert.deepEqual(await readiness(gateway), [503, "draining\n"]);
      gateway.process.kill(second);
      assert.deepEqual(await ended, [code, null]);
    });

  test("a signal after POST /quitquitquit does not cut the drain short", async () => {
    await using gateway = await start();
    const hanging = upstream.hang("/slow");
    const client = await rawClient(gateway.port(), "GET /slow HTTP/1.1\r\nHost: a.test\r\n\r\n");
    const { response } = await hanging;
    await admin(gateway).quit();
    gateway.process.kill("SIGTERM");
    await refused(gateway.port());
    response.end("at last");
    let text = "";
    for await (const chunk of client) text += String(chunk);
    assert.match(text, /at last$/);
    assert.equal(await gateway.exited(), 0);
  });

  test("after the maximum deadline, open connections are closed, counted and logged; exit code 0", async () => {
    await using gateway = await start({ connectionTerminationDeadline: "100ms" });
    const hanging = upstream.hang("/endless");
    const client = await rawClient(gateway.port(), "GET /endless HTTP/1.1\r\nHost: a.test\r\n\r\n");
    const { request } = await hanging;
    const clientCut = once(client.resume(), "close");
    const upstreamCut = once(request.socket, "close");
    const trace = admin(gateway).trace();
    await trace.opened;
    const ended = once(gateway.process, "close");
    gateway.process.kill("SIGTERM");
    assert.deepEqual(await ended, [0, null]);
    await Promise.all([clientCut, upstreamCut]);
    const warning = gateway.lines.find(({ level }) => level === "warn");
    assert.match(
      String(warning?.message),
      /^drain duration expired with pending connections, forcefully shutting down/,
    );
    assert.equal(warning?.connections, 1);
    assert.match(String(logged(gateway, "/endless")?.error), /shut/);
    // A watcher that still waits must not hold the process; its stream ends.
    for await (const _event of trace) assert.fail("no request was traced");
  });

  test("a trace of a request that is cut says so", async () => {
    await using gateway = await start({ connectionTerminationDeadline: "100ms" });
    const trace = admin(gateway).trace();
    await trace.opened;
    const hanging = upstream.hang("/traced");
    const client = await rawClient(gateway.port(), "GET /traced HTTP/1.1\r\nHost: a.test\r\n\r\n");
    await hanging;
    gateway.process.kill("SIGTERM");
    let last = "";
    for await (const { raw } of trace) last = raw;
    const { message } = JSON.parse(last) as { message: { type: string; error: string } };
    assert.equal(message.type, "requestFinished");
    assert.match(message.error, /shut/);
    client.destroy();
    assert.equal(await gateway.exited(), 0);
  });

  function start(config: object = {}): Promise<GatewayProcess> {
    return GatewayProcess.start({ ...proxyTo(upstream.address), config: { workerThreads: 2, ...config } });
  }
});

async function readiness(gateway: GatewayProcess): Promise<[number, string]> {
  const response = await fetch(`${gateway.url("readiness")}/healthz/ready`);
  return [response.status, await response.text()];
}

function logged(gateway: GatewayProcess, path: string): LogLine | undefined {
  return gateway.lines.find((line) => line["http.path"] === path);
}

/** Resolves once new connections are refused, at most after 30 s. */
async function refused(port: number): Promise<void> {
  const deadline = Date.now() + 30_000;
  for (;;) {
    const socket = connect(port, "127.0.0.1");
    const outcome = await new Promise<string>((resolve) => {
      socket.once("connect", () => resolve("accepted"));
      socket.once("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? ""));
    });
    socket.destroy();
    if (outcome === "ECONNREFUSED") return;
    assert.ok(Date.now() < deadline, `new connections are still ${outcome}`);
  }
}

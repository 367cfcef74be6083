import assert from "node:assert/strict";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, suite, test } from "node:test";
import type { ConfigStatus } from "../../../src/admin/plane/config-status.ts";
import { freePort } from "../../helpers/free-ports.ts";
import { GatewayProcess } from "../../helpers/gateway.ts";
import { ownAddress } from "../../helpers/own-address.ts";
import { until } from "../../helpers/until.ts";
import { GATEWAY, stateOf, TestXdsServer } from "../../helpers/xds.ts";

const upstream = createServer((request, response) => response.end(request.headers["x-route"] ?? "none"));
let host = "";

before(async () => {
  await new Promise<void>((resolve) => upstream.listen(0, ownAddress(), resolve));
  host = `${ownAddress()}:${(upstream.address() as AddressInfo).port}`;
});
after(() => upstream.close());

/** A route that responds with its name. */
function route(name: string): object {
  const policies = { requestHeaderModifier: { set: { "x-route": name } } };
  return { name, matches: [{ path: { pathPrefix: "/" } }], policies, backends: [{ host }] };
}

function config(port: number, ...names: string[]): object {
  return { binds: [{ port, listeners: [{ protocol: "HTTP", routes: names.map(route) }] }] };
}

function proxyOf(server: TestXdsServer, more: Readonly<Record<string, string>> = {}): Promise<GatewayProcess> {
  const env = { ...more, XDS_ADDRESS: server.address, NAMESPACE: "ns", GATEWAY: "gw", POD_NAME: "gw-1" };
  return GatewayProcess.launch({}, { env });
}

suite("a proxy of a controller", () => {
  test("starts without a configuration, serves what it is sent, follows changes, and shows their source", async () => {
    await using server = await TestXdsServer.start();
    await using gateway = await proxyOf(server);
    await gateway.until(() => server.server.proxies.length === 1, "the proxy to connect");
    await gateway.until(() => gateway.lines.some((line) => line.server === "readiness"), "its servers");
    const ready = await fetch(`${gateway.url("readiness")}/healthz/ready`);
    assert.equal(ready.status, 500);
    assert.equal(await ready.text(), "not ready, pending: state manager\n");
    server.server.publish(GATEWAY, stateOf(config(0, "one")));
    await gateway.until(() => gateway.ready, "the first state");
    const url = `http://127.0.0.1:${gateway.port()}/`;
    assert.equal(await (await fetch(url)).text(), "one");
    assert.equal((await fetch(`${gateway.url("readiness")}/healthz/ready`)).status, 200);
    server.server.publish(GATEWAY, stateOf(config(0, "two")));
    await gateway.until(() => server.server.proxies[0]?.synchronized === true, "the second state");
    assert.equal(await (await fetch(url)).text(), "two");
    // Where its configuration comes from.
    const status = await statusOf(gateway);
    assert.equal(status.source, server.address);
    assert.equal(status.hash, server.server.proxies[0]?.acknowledged);
    assert.deepEqual(status.stream, { connected: true, problem: null, version: status.hash });
    const dump = (await (await fetch(`${gateway.url("admin")}/config_dump`)).json()) as Record<
      string,
      Record<string, unknown>
    >;
    assert.deepEqual(dump.config?.xds, {
      address: server.address,
      auth: null,
      caCert: null,
      namespace: "ns",
      gateway: "gw",
    });
    assert.match(JSON.stringify(dump.binds), /"name":"two"/);
  });

  test("loses no request while its routes change and the controller dies and returns", async () => {
    let server = await TestXdsServer.start();
    await using gateway = await proxyOf(server);
    const port = await freePort();
    let state = stateOf(config(port, "v0"));
    server.server.publish(GATEWAY, state);
    await gateway.until(() => gateway.ready, "the first state");
    const load = new Load(`http://127.0.0.1:${port}/`);
    const publish = async (name: string): Promise<void> => {
      state = stateOf(config(port, name), state);
      server.server.publish(GATEWAY, state);
      await until(() => server.server.proxies[0]?.synchronized === true, `state ${name}`);
      await until(() => load.last === name, `traffic on ${name}`);
    };
    for (let i = 1; i <= 20; i++) await publish(`v${i}`);
    const { generation } = await statusOf(gateway);
    assert.equal(generation, 21);
    await server.server.close();
    await gateway.until(
      () => gateway.lines.some(({ message }) => String(message).startsWith("no connection to the controller")),
      "the proxy to notice",
    );
    const alone = await statusOf(gateway);
    assert.equal(alone.synchronized, false);
    assert.equal((await fetch(`${gateway.url("readiness")}/healthz/ready`)).status, 200);
    const before = load.responses;
    await until(() => load.responses > before + 50, "traffic without a controller");
    // Another replica with the same state: nothing is sent again, and nothing is applied again.
    server = await TestXdsServer.start({}, server.port);
    server.server.publish(GATEWAY, stateOf(config(port, "v20")));
    await until(() => server.server.proxies[0]?.synchronized === true, "the proxy to resume");
    assert.equal((await statusOf(gateway)).generation, 21);
    assert.equal((await statusOf(gateway)).synchronized, true);
    await publish("v21");
    await load.stop();
    assert.deepEqual(load.failures, []);
    await server.server.close();
  });

  test("keeps the last good state when the newest cannot be applied, and tries again", async () => {
    await using server = await TestXdsServer.start();
    await using gateway = await proxyOf(server);
    const port = await freePort();
    server.server.publish(GATEWAY, stateOf(config(port, "good")));
    await gateway.until(() => gateway.ready, "the first state");
    const taken = createServer();
    const other = await listening(taken);
    const bad = config(port, "bad") as { binds: object[] };
    bad.binds.push(...(config(other, "other") as { binds: object[] }).binds);
    server.server.publish(GATEWAY, stateOf(bad));
    await until(() => server.server.proxies[0]?.rejection !== null, "the rejection");
    assert.match(server.server.proxies[0]?.rejection?.message ?? "", new RegExp(`${other}`));
    const url = `http://127.0.0.1:${port}/`;
    assert.equal(await (await fetch(url)).text(), "good");
    const rejected = await statusOf(gateway);
    assert.equal(rejected.generation, 1);
    assert.match(rejected.lastError?.message ?? "", new RegExp(`${other}`));
    assert.notEqual(rejected.nextRetryAt, null);
    await new Promise((resolve) => taken.close(resolve));
    await until(() => server.server.proxies[0]?.synchronized === true, "the retry");
    assert.equal(server.server.proxies[0]?.rejection, null);
    assert.equal(await (await fetch(url)).text(), "bad");
    assert.equal((await statusOf(gateway)).lastError, null);
  });

  test("follows changes until its ports close, because clients still connect while a pod terminates", async () => {
    await using server = await TestXdsServer.start();
    await using gateway = await proxyOf(server, { CONNECTION_MIN_TERMINATION_DEADLINE: "60s" });
    const port = await freePort();
    server.server.publish(GATEWAY, stateOf(config(port, "before")));
    await gateway.until(() => gateway.ready, "the first state");
    gateway.process.kill("SIGTERM");
    await gateway.until(() => gateway.lines.some(({ message }) => message === "draining"), "the drain");
    server.server.publish(GATEWAY, stateOf(config(port, "after")));
    await until(async () => (await (await fetch(`http://127.0.0.1:${port}/`)).text()) === "after", "the change");
  });

  test("a file with routes, or without the name of the Gateway, is rejected with a reason", async () => {
    const address = { XDS_ADDRESS: "http://127.0.0.1:1", NAMESPACE: "ns" };
    const refusal = async (config: object, env: Record<string, string>): Promise<string> => {
      await using gateway = await GatewayProcess.launch(config, { env });
      assert.equal(await gateway.exited(), 1);
      return gateway.stderr;
    };
    const [routes, unknown] = await Promise.all([
      refusal(config(0, "x"), { ...address, GATEWAY: "gw" }),
      refusal({}, address),
    ]);
    assert.match(routes, /binds: cannot be set here while a controller is set/);
    assert.match(unknown, /GATEWAY must be set/);
  });
});

/** One request after the other, until it is stopped. */
class Load {
  readonly failures: string[] = [];
  responses = 0;
  last = "";
  #running = true;
  readonly #done: Promise<void>;

  constructor(url: string) {
    this.#done = this.#run(url);
  }

  async #run(url: string): Promise<void> {
    while (this.#running) {
      try {
        const response = await fetch(url);
        this.last = await response.text();
        this.responses++;
        if (response.status !== 200) this.failures.push(`${response.status} ${this.last}`);
      } catch (error) {
        this.failures.push(String(error));
      }
    }
  }

  async stop(): Promise<void> {
    this.#running = false;
    await this.#done;
  }
}

async function statusOf(gateway: GatewayProcess): Promise<ConfigStatus> {
  return (await (await fetch(`${gateway.url("admin")}/config/status`)).json()) as ConfigStatus;
}

async function listening(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, resolve));
  return (server.address() as AddressInfo).port;
}

import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, suite, test } from "node:test";
import { TestGateway } from "../../helpers/gateway.ts";
import { GATEWAY, stateOf, TestXdsServer } from "../../helpers/xds.ts";

const upstream = createServer((request, response) => response.end(request.headers["x-route"] ?? "none"));
let host = "";

before(async () => {
  await new Promise<void>((resolve) => upstream.listen(0, "127.0.0.1", resolve));
  host = `127.0.0.1:${(upstream.address() as AddressInfo).port}`;
});
after(() => upstream.close());

/** A route that says which one it is. */
function route(name: string): object {
  const policies = { requestHeaderModifier: { set: { "x-route": name } } };
  return { name, matches: [{ path: { pathPrefix: "/" } }], policies, backends: [{ host }] };
}

function config(port: number, ...names: string[]): object {
  return { binds: [{ port, listeners: [{ protocol: "HTTP", routes: names.map(route) }] }] };
}

function proxyOf(server: TestXdsServer): Promise<TestGateway> {
  const env = { XDS_ADDRESS: server.address, NAMESPACE: "ns", GATEWAY: "gw", POD_NAME: "gw-1" };
  return TestGateway.launch({}, { env });
}

suite("a proxy of a controller", () => {
  test("starts from nothing, serves what it is sent and follows changes", async () => {
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
    const served = new Set<string>();
    server.server.publish(GATEWAY, stateOf(config(0, "two")));
    await gateway.until(() => server.server.proxies[0]?.synchronized === true, "the second state");
    served.add(await (await fetch(url)).text());
    assert.deepEqual([...served], ["two"]);
  });
});

import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { TestGateway } from "../../helpers/gateway.ts";
import { admin, call, traceOf } from "../trace/support.ts";

/** Listeners of `gateways` belong to the gateway `default` and are called what routes call them, wherever names show. */
suite("names of listeners of gateways", () => {
  const targets = {
    all: { gatewayName: "default" },
    entry: { gatewayName: "edge" },
    listener: { gatewayName: "default", listenerName: "edge/web" },
    "listener-of-entry": { gatewayName: "edge", listenerName: "web" },
    "other-listener": { gatewayName: "edge", listenerName: "rest" },
  };
  let gateway: TestGateway;
  before(async () => {
    gateway = await TestGateway.start({
      gateways: {
        edge: { port: 0, listeners: [{ name: "web", hostname: "web.test" }, { name: "rest" }] },
      },
      routes: [
        { gateways: "edge/rest", policies: { directResponse: { status: 200, body: "rest" } } },
        { gateways: "edge/web", policies: { directResponse: { status: 200, body: "web" } } },
      ],
      policies: Object.entries(targets).map(([name, target]) => ({
        name: { name },
        target: { gateway: target },
        // Authorization rules add up, so each target is tested separately.
        policy: { authorization: { rules: [{ deny: `request.headers["x-deny"] == "${name}"` }] } },
      })),
    });
  });
  after(() => gateway.stop());

  const ask = (headers: Readonly<Record<string, string>> = {}) =>
    call(gateway.port(), { headers: { host: "web.test", ...headers } });

  test("the dump and the metrics", async () => {
    assert.equal((await ask()).body.toString(), "web");
    const dump = (await admin(gateway).configDump()) as {
      readonly binds: readonly { readonly listeners: Readonly<Record<string, Readonly<Record<string, unknown>>>> }[];
    };
    const web = dump.binds[0]?.listeners["gateway/edge/web"];
    assert.deepEqual([web?.gatewayName, web?.gatewayNamespace, web?.listenerName], ["default", "default", "edge/web"]);
    assert.deepEqual(Object.keys(web?.routes ?? {}), ["gateway/edge/web/default/route0"]);
    const metrics = await (await fetch(`${gateway.url("stats")}/metrics`)).text();
    const line = metrics.split("\n").find((each) => /^\w+_requests_total\{/.test(each)) ?? "";
    for (const label of ['gateway="default/default"', 'listener="edge/web"', 'route="default/route0"', 'bind="bind/0"'])
      assert.ok(line.includes(label), `${label} in ${line}`);
  });

  test("the access log and traces", async () => {
    const events = await traceOf(gateway, () => ask());
    const selected = events.flatMap(({ message }) =>
      message.type === "routeSelection" ? [message.selectedRoute] : [],
    );
    assert.deepEqual(selected, ["gateway/edge/web/default/route0"]);
    const line = () => gateway.lines.find((each) => each["http.path"] !== undefined);
    await gateway.until(() => line() !== undefined, "the access log");
    assert.deepEqual(
      [line()?.gateway, line()?.listener, line()?.route],
      ["default/default", "edge/web", "default/route0"],
    );
  });

  test("targets: all listeners, those of an entry, or one of them by either name", async () => {
    for (const name of ["all", "entry", "listener", "listener-of-entry"])
      assert.equal((await ask({ "x-deny": name })).status, 403, name);
    assert.equal((await ask({ "x-deny": "other-listener" })).status, 200);
  });
});

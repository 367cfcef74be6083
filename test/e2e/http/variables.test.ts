import assert from "node:assert/strict";
import { test } from "node:test";
import { LocalGateway } from "../../helpers/local-gateway.ts";
import { logged } from "../tls/support.ts";
import { call, Upstream } from "../trace/support.ts";

test("at the end of a request, expressions read its rule, its end time and the duration of each part", async () => {
  const upstream = await Upstream.start();
  const add = {
    rule: "proxy.route.rule",
    ended: "request.endTime >= request.startTime",
    took: '[proxy.requestProcessingDuration, proxy.responseProcessingDuration].all(x, x >= duration("0s"))',
    upstream: 'proxy.upstreamDuration > duration("0s")',
    text: "string(proxy.upstreamDuration)",
  };
  // Values that are not known yet when the response is made are absent.
  const early = "[has(request.endTime), has(proxy.responseProcessingDuration), has(proxy.upstreamDuration)]";
  const policies = { transformations: { response: { set: { "x-early": `${early}.map(x, string(x)).join()` } } } };
  const route = { name: "shop", ruleName: "cart", policies, backends: [{ host: upstream.address }] };
  try {
    await using gateway = await LocalGateway.start({
      frontendPolicies: { accessLog: { add } },
      binds: [{ port: 0, listeners: [{ routes: [route] }] }],
    });
    const answer = await call(gateway.port(), {});
    assert.equal(answer.headers["x-early"], "falsefalsetrue");
    await logged(gateway, { scope: "request", rule: "cart", ended: true, took: true, upstream: true });
    const line = gateway.lines.find((each) => each.scope === "request");
    assert.match(String(line?.text), /^0?\.?\d[\d.]*s$/);
  } finally {
    await upstream.close();
  }
});

test("a client is identified by the workload with its address, if the address can be trusted", async () => {
  const upstream = await Upstream.start();
  const config = (serviceAccount: string): object => ({
    workloads: [
      { uid: "other", name: "other", namespace: "shop", workloadIps: ["10.0.0.1", "::1"] },
      { uid: "front", name: "front-1", namespace: "shop", workloadIps: ["127.0.0.1"], serviceAccount },
    ],
    frontendPolicies: {
      networkAuthorization: { rules: ['source.unverifiedWorkload.namespace == "shop"'] },
      accessLog: { add: { from: "source.unverifiedWorkload.serviceAccount" } },
    },
    binds: [
      {
        port: 0,
        listeners: [
          {
            routes: [
              {
                policies: { authorization: { rules: ['source.unverifiedWorkload.serviceAccount == "front"'] } },
                backends: [{ host: upstream.address }],
              },
            ],
          },
        ],
      },
    ],
  });
  try {
    await using gateway = await LocalGateway.start(config("front"));
    assert.equal((await call(gateway.port(), {})).status, 200);
    await logged(gateway, { scope: "request", from: "front" });
    await gateway.reconfigure(config("back"));
    assert.equal((await call(gateway.port(), {})).status, 403);
    await logged(gateway, { scope: "request", from: "back" });
  } finally {
    await upstream.close();
  }
});

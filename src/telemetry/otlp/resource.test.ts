import assert from "node:assert/strict";
import { hostname } from "node:os";
import { test } from "node:test";
import { STANDARD_ENVIRONMENT } from "../../cel/index.ts";
import { resourceAttributes } from "./resource.ts";

test("what is known about the process, in Kubernetes too", () => {
  const alone = resourceAttributes({}, {}, {}, "1.2", STANDARD_ENVIRONMENT);
  assert.deepEqual(
    [alone["service.name"], alone["service.version"], alone["host.name"], alone["service.namespace"]],
    ["tracegate", "1.2", hostname(), undefined],
  );
  assert.match(String(alone["service.instance.id"]), /^[0-9a-f-]{36}$/);
  assert.equal(
    resourceAttributes({}, {}, {}, "", STANDARD_ENVIRONMENT)["service.instance.id"],
    alone["service.instance.id"],
  );
  const env = { GATEWAY: "edge", NAMESPACE: "shop", POD_NAME: "edge-0", NODE_NAME: "n1", INSTANCE_IP: "10.0.0.1" };
  const {
    "service.instance.id": _id,
    "service.version": _v,
    "host.name": _h,
    ...rest
  } = resourceAttributes({}, env, {}, "", STANDARD_ENVIRONMENT);
  assert.deepEqual(rest, {
    "service.name": "edge",
    "service.namespace": "shop",
    "k8s.pod.name": "edge-0",
    "k8s.namespace.name": "shop",
    "k8s.node.name": "n1",
    "k8s.pod.ip": "10.0.0.1",
  });
  // As for the configuration that such a proxy asks for.
  const shared = resourceAttributes({}, { ...env, GATEWAY_CLASS: "shared" }, {}, "", STANDARD_ENVIRONMENT);
  assert.equal(shared["service.name"], "shared");
});

test("precedence: configuration, OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES, then what is known about the process", () => {
  const attributes = "service.name=listed,team=a%2Cb, odd , =x,bad=%zz,region=eu";
  const env = { GATEWAY: "edge", OTEL_RESOURCE_ATTRIBUTES: attributes };
  const listed = resourceAttributes({}, env, {}, "", STANDARD_ENVIRONMENT);
  assert.deepEqual(
    [listed["service.name"], listed.team, listed.region, "bad" in listed, "" in listed],
    ["listed", "a,b", "eu", false, false],
  );
  const named = { ...env, OTEL_SERVICE_NAME: "named" };
  assert.equal(resourceAttributes({}, named, {}, "", STANDARD_ENVIRONMENT)["service.name"], "named");
  const configured = { "service.name": '"configured"', pod: "env.podName", none: "env.gateway" };
  const known = resourceAttributes(configured, named, { podName: "edge-0" }, "", STANDARD_ENVIRONMENT);
  assert.deepEqual([known["service.name"], known.pod, "none" in known], ["configured", "edge-0", false]);
});

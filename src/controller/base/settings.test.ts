import assert from "node:assert/strict";
import { test } from "node:test";
import { controllerSettings } from "./settings.ts";

test("the operator's settings for hosts and namespaces", () => {
  const env = {
    TRACEGATE_ALLOW_CLUSTER_HOSTS: "true",
    TRACEGATE_DENY_NETWORKS: "10.96.0.0/12, fd00::/64,",
    TRACEGATE_WATCH_NAMESPACES: "apps, shop,apps",
    TRACEGATE_WATCH_GATEWAY_SELECTOR: "team=a",
  };
  const { hosts, watch } = controllerSettings(env, "1.2.3", "host");
  assert.deepEqual(hosts, {
    allowClusterHosts: true,
    domains: ["cluster.local", "clusterset.local"],
    denyNetworks: ["10.96.0.0/12", "fd00::/64"],
  });
  assert.deepEqual(watch, { namespaces: ["apps", "shop"], gatewaySelector: "team=a" });
  const defaults = controllerSettings({}, "1.2.3", "host");
  assert.equal(defaults.hosts.allowClusterHosts, false);
  assert.deepEqual(defaults.watch, { namespaces: [], gatewaySelector: "" });
});

test("the domain of the cluster is among the search domains of the pod", () => {
  const file =
    "nameserver 10.96.0.10\nsearch tracegate-system.svc.corp.example svc.corp.example corp.example\noptions ndots:5\n";
  assert.deepEqual(controllerSettings({}, "1.2.3", "host", file).hosts.domains, [
    "cluster.local",
    "clusterset.local",
    "corp.example",
  ]);
});

test("an invalid network prevents the start, with the name of the variable in the error", () => {
  assert.throws(() => controllerSettings({ TRACEGATE_DENY_NETWORKS: "10.0.0.0/33" }, "1.2.3", "host"), {
    message: /^TRACEGATE_DENY_NETWORKS: "10.0.0.0\/33" is not an IP address or network/,
  });
});

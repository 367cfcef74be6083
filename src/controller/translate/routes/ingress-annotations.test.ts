import assert from "node:assert/strict";
import { test } from "node:test";
import { refusedAnnotations } from "./ingress-annotations.ts";

test("annotations of other ingress controllers are refused, others are not", () => {
  const refused = (...names: readonly string[]): number =>
    refusedAnnotations(Object.fromEntries(names.map((name) => [name, "x"]))).length;
  const foreign = [
    "ingress.kubernetes.io/whitelist",
    "nginx.ingress.kubernetes.io/auth-url",
    "traefik.ingress.kubernetes.io/router.middlewares",
    "nginx.org/basic-auth-secret",
    "haproxy.org/allow-list",
    "konghq.com/plugins",
    "configuration.konghq.com/plugins",
    "projectcontour.io/tls-minimum-protocol-version",
    "ingress.cilium.io/force-https",
    "kubernetes.io/ingress.allow-http",
  ];
  for (const name of foreign) assert.equal(refused(name), 1, name);
  assert.equal(refused("kubernetes.io/ingress.class", "cert-manager.io/cluster-issuer", "example.konghq.com.org/a"), 0);
});

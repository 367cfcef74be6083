import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { testCluster } from "../../../test/helpers/kube/tgctl.ts";

const condition = (type: string, status: "True" | "False", reason: string, message = "") => ({
  type,
  status,
  reason,
  message,
});
const GOOD = [condition("Accepted", "True", "Accepted"), condition("Programmed", "True", "Programmed")];

/** A cluster with the Gateway `shop/web`, a route of it and of another one, and a policy. */
async function cluster(t: TestContext, route = condition("Accepted", "True", "Accepted")) {
  const made = await testCluster(t);
  made.gateway("web", "shop", GOOD);
  const parent = (name: string, ...conditions: readonly object[]): object => ({
    parentRef: { name },
    controllerName: "c",
    conditions,
  });
  made.server.set({
    apiVersion: "gateway.networking.k8s.io/v1",
    kind: "HTTPRoute",
    metadata: { name: "cart", namespace: "shop" },
    spec: {},
    status: {
      parents: [
        parent("web", route, condition("tracegate.dev/Findings", "True", "ShadowedRoute", "rules[1] never wins")),
        parent("other", condition("ResolvedRefs", "False", "BackendNotFound", "of another Gateway")),
      ],
    },
  } as never);
  made.server.set({
    apiVersion: "tracegate.dev/v1alpha1",
    kind: "TracegatePolicy",
    metadata: { name: "login", namespace: "auth" },
    spec: {},
    status: {
      ancestors: [
        {
          ancestorRef: { kind: "Gateway", name: "web", namespace: "shop" },
          controllerName: "c",
          conditions: [condition("tracegate.dev/Findings", "True", "LenientAuthentication", "lets requests pass")],
        },
      ],
    },
  } as never);
  return made;
}

const WARNINGS = `HTTPRoute shop/cart: warning: tracegate.dev/Findings ShadowedRoute: rules[1] never wins
TracegatePolicy auth/login: warning: tracegate.dev/Findings LenientAuthentication: lets requests pass
`;

test("check prints what the statuses of a Gateway's objects say, and --strict counts warnings", async (t) => {
  const { tgctl } = await cluster(t);
  const lax = await tgctl("check", "gateway/web", "-n", "shop");
  assert.deepEqual(lax, { code: 0, stdout: `${WARNINGS}0 errors, 2 warnings\n`, stderr: "" });
  assert.equal((await tgctl("check", "gateway/web.shop", "--strict")).code, 1);
  const { findings } = JSON.parse((await tgctl("check", "gateway/web.shop", "-o", "json")).stdout);
  assert.deepEqual(findings[0], {
    severity: "warning",
    object: "HTTPRoute shop/cart",
    condition: "tracegate.dev/Findings",
    reason: "ShadowedRoute",
    message: "rules[1] never wins",
  });
});

test("check covers ListenerSets of a Gateway, and routes that attach through them", async (t) => {
  const { tgctl, server } = await cluster(t);
  const group = "gateway.networking.k8s.io/v1";
  for (const [name, gateway] of [
    ["extra", "web"],
    ["foreign", "other"],
  ] as const) {
    server.set({
      apiVersion: group,
      kind: "ListenerSet",
      metadata: { name, namespace: "apps" },
      spec: { parentRef: { name: gateway, namespace: "shop" } },
      status: {
        conditions: [condition("Accepted", "True", "ListenersNotValid")],
        listeners: [{ name: "tls", conditions: [condition("ResolvedRefs", "False", "InvalidCertificateRef", name)] }],
      },
    } as never);
    const conditions = [condition("ResolvedRefs", "False", "BackendNotFound", `through ${name}`)];
    server.set({
      apiVersion: group,
      kind: "GRPCRoute",
      metadata: { name: `by-${name}`, namespace: "apps" },
      spec: {},
      status: { parents: [{ parentRef: { kind: "ListenerSet", name }, controllerName: "c", conditions }] },
    } as never);
  }
  const { code, stdout } = await tgctl("check", "gateway/web.shop");
  assert.equal(code, 1);
  assert.equal(
    stdout,
    `GRPCRoute apps/by-extra: error: ResolvedRefs BackendNotFound: through extra
${WARNINGS.replace("\n", "\nListenerSet apps/extra (tls): error: ResolvedRefs InvalidCertificateRef: extra\n")}2 errors, 2 warnings
`,
  );
});

test("check covers TracegateBackends that routes and other backends of the Gateway call, and no others", async (t) => {
  const { tgctl, server } = await cluster(t);
  const backend = (namespace: string, name: string, spec: object, ...conditions: object[]): void => {
    server.set({
      apiVersion: "tracegate.dev/v1alpha1",
      kind: "TracegateBackend",
      metadata: { namespace, name },
      spec,
      status: { conditions },
    } as never);
  };
  const call = (name: string, namespace?: string): object => ({
    group: "tracegate.dev",
    kind: "TracegateBackend",
    name,
    ...(namespace !== undefined && { namespace }),
  });
  const partial = condition("Accepted", "True", "PartiallyValid", "spec.policies.health: unknown field");
  const policies = { extAuthz: { backendRef: call("checks", "auth") } };
  backend("shop", "direct", { policies }, partial);
  backend("auth", "checks", {}, condition("Accepted", "False", "Invalid", "spec.static: required"));
  backend("shop", "unused", {}, condition("Accepted", "False", "Invalid", "of no Gateway"));
  backend("auth", "direct", {}, condition("Accepted", "False", "Invalid", "of another namespace"));
  backend("shop", "targeted", {}, condition("Accepted", "False", "Invalid", "of another Gateway"));
  server.set({
    apiVersion: "gateway.networking.k8s.io/v1",
    kind: "HTTPRoute",
    metadata: { name: "direct", namespace: "shop" },
    spec: { rules: [{ backendRefs: [call("direct")] }] },
    status: { parents: [{ parentRef: { name: "web" }, controllerName: "c", conditions: GOOD }] },
  } as never);
  server.set({
    apiVersion: "gateway.networking.k8s.io/v1",
    kind: "BackendTLSPolicy",
    metadata: { name: "tls", namespace: "shop" },
    spec: { targetRefs: [call("targeted")] },
    status: {
      ancestors: [
        {
          ancestorRef: { kind: "Gateway", name: "web" },
          controllerName: "c",
          conditions: [condition("ResolvedRefs", "False", "InvalidKind", "no CA")],
        },
      ],
    },
  } as never);
  const { code, stdout } = await tgctl("check", "gateway/web.shop");
  assert.equal(code, 1);
  assert.equal(
    stdout,
    `BackendTLSPolicy shop/tls: error: ResolvedRefs InvalidKind: no CA
${WARNINGS.replace(
  "\n",
  `
TracegateBackend auth/checks: error: Accepted Invalid: spec.static: required
TracegateBackend shop/direct: error: Accepted PartiallyValid: spec.policies.health: unknown field
`,
)}3 errors, 2 warnings
`,
  );
});

test("check exits with 1 for errors; a Gateway that is not there or has no status is one", async (t) => {
  const { tgctl, gateway } = await cluster(t, condition("Accepted", "False", "NotAllowedByListeners", "no listener"));
  const { code, stdout } = await tgctl("check", "gateway/web.shop");
  assert.equal(code, 1);
  assert.match(stdout, /^HTTPRoute shop\/cart: error: Accepted NotAllowedByListeners: no listener$/m);
  assert.match(stdout, /^1 error, 2 warnings$/m);
  const absent = await tgctl("check", "gateway/none.shop");
  assert.equal(absent.code, 1);
  assert.match(absent.stderr, /failed to get gateway shop\/none/);
  gateway("new");
  assert.match((await tgctl("check", "gateway/new.shop")).stderr, /Gateway shop\/new has no status yet/);
  assert.match((await tgctl("check", "deploy/web")).stderr, /deploy\/web is not a Gateway/);
});

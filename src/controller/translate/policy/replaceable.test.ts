import assert from "node:assert/strict";
import { test } from "node:test";
import { parse } from "yaml";
import { desiredStatuses } from "../../status/statuses.ts";
import { type Anything, cluster } from "../fixtures/cluster.ts";

/** The message of the condition about a policy for the Gateway `apps/web`; undefined without the condition. */
function warning(
  spec: string,
  listener = "allowedRoutes: {namespaces: {from: All}}",
  gateway = "",
): string | undefined {
  const graph = cluster(
    ...(parse(`
- kind: Gateway
  metadata: {namespace: apps, name: web}
  spec: {gatewayClassName: tracegate, listeners: [{name: http, port: 80, protocol: HTTP, ${listener}}], ${gateway}}
- kind: TracegatePolicy
  metadata: {namespace: apps, name: p}
  spec: {targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: web}], ${spec}}
`) as Anything[]),
  );
  const status = graph.query(desiredStatuses, "").find(({ kind }) => kind === "TracegatePolicy")?.status;
  assert.ok(status !== undefined && "ancestors" in status);
  const found = status.ancestors[0]?.conditions.find(({ type }) => type === "Replaceable");
  assert.ok(found === undefined || found.status === "True");
  return found?.message;
}

const AUTHZ = 'traffic: {authorization: {rules: ["true"]}}';

test("a restricting policy of a Gateway that does not set inheritance gets a warning that says who can replace it", () => {
  assert.equal(
    warning(
      "traffic: {jwtAuth: {issuer: i, jwks: '{\"keys\":[]}'}, localRateLimit: [{maxTokens: 1, tokensPerFill: 1, fillInterval: 1s}]}",
    ),
    "jwtAuth, localRateLimit of Gateway apps/web can be replaced by users who may write routes and TracegatePolicies in any namespace; set strategy.inheritance to Override to prevent that, or to Default to allow it",
  );
  assert.match(warning(AUTHZ, "allowedRoutes: {namespaces: {from: Same}}") ?? "", / in namespace apps;/);
  assert.match(
    warning(AUTHZ, "allowedRoutes: {namespaces: {from: Selector, selector: {}}}") ?? "",
    / in the namespaces that its listeners select;/,
  );
  assert.match(
    warning(
      "traffic: {phase: PreRouting, authorization: {rules: ['true']}}",
      "",
      "allowedListeners: {namespaces: {from: All}}",
    ) ?? "",
    /TracegatePolicies for ListenerSets in any namespace/,
  );
});

test("there is no warning if the author has decided, if no other user could replace the policy, or if it restricts nothing", () => {
  for (const inheritance of ["Override", "Default"])
    assert.equal(warning(`strategy: {inheritance: ${inheritance}}, ${AUTHZ}`), undefined);
  assert.equal(warning("traffic: {phase: PreRouting, authorization: {rules: ['true']}}"), undefined);
  assert.equal(warning("traffic: {timeout: {requestTimeout: 5s}}"), undefined);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { gatewayPolicies } from "../../translation/schema/policies.ts";
import { loadConfig } from "../load.ts";
import { bind, gateway } from "../schema/listeners.ts";

/** Names of fields, as users write them. */
function fieldsOf(schema: z.ZodType, ...path: readonly string[]): string[] {
  let at = z.toJSONSchema(schema, { io: "input", unrepresentable: "any", reused: "inline" }) as Record<string, unknown>;
  const { $defs = {} } = at as { $defs?: Record<string, Record<string, unknown>> };
  const resolve = (each: Record<string, unknown>): Record<string, unknown> =>
    typeof each.$ref === "string" ? ($defs[each.$ref.split("/").at(-1) ?? ""] ?? {}) : each;
  at = resolve(at);
  for (const name of path)
    at = resolve((at.properties as Record<string, { items: Record<string, unknown> }>)[name]?.items ?? {});
  return Object.keys(at.properties as object).sort();
}

const POLICIES = Object.keys(gatewayPolicies.shape);

test("binds and gateways take the same fields, except those that docs/binds-and-gateways.md explains", () => {
  const without = (fields: readonly string[], ...others: readonly string[]): string[] =>
    fields.filter((each) => !others.includes(each));
  assert.deepEqual(fieldsOf(bind), without(fieldsOf(gateway), "hostname", "protocol", "tls", ...POLICIES));
  assert.deepEqual(
    without(fieldsOf(bind, "listeners"), "namespace", "routes", "tcpRoutes", "policies"),
    without(fieldsOf(gateway, "listeners"), ...POLICIES),
  );
});

test("an entry of either kind makes the same bind", () => {
  const served = (config: object) => {
    const loaded = loadConfig({ kind: "text", text: JSON.stringify(config) }, {});
    assert.ok(loaded.ok, JSON.stringify(loaded));
    return loaded.ir.binds.map(({ listeners, frontend: _f, ...others }) => [
      others,
      listeners.map(({ protocol, routes }) => [protocol, routes.map(({ name }) => name)]),
    ]);
  };
  const policies = { directResponse: { status: 200 } };
  for (const reached of [
    { port: 8080 },
    { port: 8080, tunnelProtocol: "proxy" },
    { port: 443, tunnelProtocol: "connect", address: ["127.0.0.1", "::1"] },
    { port: 443, mode: "internal" },
    { mode: "internal" },
    { address: "unix:/run/app.sock", socketMode: "0660" },
  ]) {
    const routes = [{ name: "r", policies }];
    assert.deepEqual(
      served({ gateways: { web: reached }, routes: [{ ...routes[0], gateways: ["web"] }] }),
      served({ binds: [{ ...reached, listeners: [{ routes }] }] }),
    );
  }
});

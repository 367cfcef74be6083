/**
 * What Argo CD and Flux say about the objects of `kubernetes/*.in.yaml` with the statuses that the controller writes, by the rules of
 * `install/gitops/`, run as they do it: Lua with two libraries, and CEL. UPDATE_GOLDEN=1 writes `gitops-health.txt`; certificates in the
 * inputs are left as names, so they are invalid.
 */
import assert from "node:assert/strict";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { Environment } from "@marcbachmann/cel-js";
import { lauxlib, lua, lualib, to_luastring } from "fengari";
import { parse } from "yaml";
import { appRoot } from "../../src/base/app-root.ts";
import type { DesiredStatus } from "../../src/controller/status/desired.ts";
import { statusChange } from "../../src/controller/status/merge-status.ts";
import { desiredStatuses } from "../../src/controller/status/statuses.ts";
import type { Condition, KubeObject } from "../../src/kube/objects.ts";
import { RESOURCES } from "../../src/kube/resources.ts";
import { CLASS, clusterOf } from "../helpers/kube/cluster-of.ts";

type Health = "Healthy" | "Progressing" | "Degraded";
type Stated = KubeObject & { readonly status?: object };

const ARGO = "resource.customizations.health.";
const FILES = `${appRoot}install/gitops/`;
const GOLDEN = `${import.meta.dirname}/gitops-health.txt`;
/** Inputs that `gitops-health.txt` shows: together they have each condition and reason that the rules know. */
const SHOWN = [
  "addresses",
  "backend-tls",
  "httproute-invalid-rules",
  "listener-conflicts",
  "not-programmed",
  "policies",
  "policy-conflicts",
  "policy-errors",
  "route-parents",
];
/** Conditions that change no health: nothing fails. */
const NOTICES = [
  "InsecureFrontendValidationMode",
  "Overridden",
  "OverlappingTLSConfig",
  "Replaceable",
  "tracegate.dev/Findings",
];
/** Conditions that rules leave alone: the controller does all it can with CRDs of another version, and a reservation is never False. */
const IGNORED = ["SupportedVersion", "shared.tracegate.dev/shared"];

const { data: argo } = parse(readFileSync(`${FILES}argo-cd-health.yaml`, "utf8")) as { data: Record<string, string> };
const { spec } = parse(readFileSync(`${FILES}flux-health.yaml`, "utf8")) as {
  spec: { healthCheckExprs: readonly Record<"apiVersion" | "kind" | "inProgress" | "failed" | "current", string>[] };
};
const cel = new Environment({
  unlistedVariablesAreDyn: true,
  enableOptionalTypes: true,
  homogeneousAggregateLiterals: false,
});
const programs = new Map<string, ReturnType<Environment["parse"]>>();
const objects = readdirSync(`${import.meta.dirname}/kubernetes`)
  .filter((file) => file.endsWith(".in.yaml"))
  .flatMap((file) => objectsOf(file));

test("both give each object the health that its status means", () => {
  let text = "";
  for (const { name, object } of objects) {
    const { health, message } = argoHealth(object);
    const flux = fluxHealth(object);
    if (flux !== undefined) assert.equal(flux, health, `${name} in Flux`);
    if (SHOWN.includes(name.split(" ")[0] ?? ""))
      text += `${name}: ${[health, ...message.split("\n").filter(Boolean)].join("\n  ")}\n`;
  }
  if (process.env.UPDATE_GOLDEN !== undefined) writeFileSync(GOLDEN, text);
  assert.equal(text, readFileSync(GOLDEN, "utf8"));
});

test("a status that is older than the object, or missing, is awaited", () => {
  for (const { name, object } of objects) {
    const changed = { ...object, metadata: { ...object.metadata, generation: (object.metadata.generation ?? 0) + 1 } };
    assert.equal(argoHealth(changed).health, "Progressing", name);
    assert.equal(fluxHealth(changed) ?? "Progressing", "Progressing", name);
    const { status: _, ...fresh } = object;
    const unused = object.kind === "BackendTLSPolicy" || object.kind === "XBackendTrafficPolicy";
    assert.equal(argoHealth(fresh).health, unused ? "Healthy" : "Progressing", name);
    // Flux waits while an expression fails, as these do without a status.
    if (fluxRule(object) !== undefined) assert.throws(() => fluxHealth(fresh), name);
  }
});

test("a parent that no controller has answered for is awaited", () => {
  for (const { name, object } of objects) {
    const { parents } = (object.status ?? {}) as { readonly parents?: readonly { readonly parentRef: object }[] };
    if (parents === undefined || argoHealth(object).health !== "Healthy") continue;
    const parentRefs = [...parents.map(({ parentRef }) => parentRef), { name: "another" }];
    const further = { ...object, spec: { parentRefs } };
    assert.equal(argoHealth(further).health, "Progressing", name);
    assert.equal(fluxHealth(further), "Progressing", name);
  }
});

test("the rules know each condition that the controller writes", () => {
  const [script = ""] = Object.values(argo);
  const types = new Set(objects.flatMap(({ conditions }) => conditions.map(({ type }) => type)));
  for (const type of types)
    assert.ok(script.includes(type) || IGNORED.includes(type), `${type} in argo-cd-health.yaml`);
  const quoted = [...new Set(spec.healthCheckExprs.flatMap(({ failed }) => failed.match(/'[A-Z]\w+'/g) ?? []))];
  for (const type of types) {
    const known = quoted.includes(`'${type}'`) || NOTICES.includes(type) || IGNORED.includes(type);
    assert.ok(known, `${type} in flux-health.yaml`);
  }
});

test("each kind with a status has rules, once", () => {
  const kinds = new Set(objects.map(({ object }) => object.kind));
  for (const kind of kinds) {
    const { group } = RESOURCES[kind as DesiredStatus["kind"]];
    assert.ok(`${ARGO}${group}_${kind}` in argo, kind);
  }
  const rules = spec.healthCheckExprs.map(({ apiVersion, kind }) => `${apiVersion}/${kind}`);
  assert.deepEqual(rules, [...new Set(rules)]);
});

/** Without Ingresses, whose health both know, and GatewayClasses that an input does not write. */
function objectsOf(file: string) {
  const graph = clusterOf(readFileSync(`${import.meta.dirname}/kubernetes/${file}`, "utf8"));
  return graph
    .query(desiredStatuses, "")
    .filter(
      ({ kind, generation }) =>
        kind !== "Ingress" && (kind !== "GatewayClass" || generation !== CLASS.metadata.generation),
    )
    .map((desired) => {
      const written = graph.get(desired.kind, desired.key);
      assert.ok(written !== undefined);
      const { group, version } = RESOURCES[desired.kind];
      const { spec: ownSpec = {}, metadata } = written as KubeObject & { readonly spec?: object };
      const bare = { apiVersion: `${group}/${version}`, kind: desired.kind, metadata, spec: ownSpec };
      const change = statusChange(desired, bare, CLASS.spec.controllerName, "2026-01-01T00:00:00Z");
      const object: Stated = { ...bare, ...(change && { status: change.status }) };
      return {
        name: `${file.slice(0, -".in.yaml".length)} ${desired.kind}/${desired.key}`,
        object,
        conditions: conditionsIn(object),
      };
    })
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

function conditionsIn(part: unknown): readonly Condition[] {
  if (typeof part !== "object" || part === null) return [];
  return Object.entries(part).flatMap(([field, value]) =>
    field === "conditions" ? (value as Condition[]) : conditionsIn(value),
  );
}

function argoHealth(object: Stated): { readonly health: Health; readonly message: string } {
  const script = argo[`${ARGO}${object.apiVersion.split("/")[0]}_${object.kind}`];
  assert.ok(script !== undefined, object.kind);
  const state = lauxlib.luaL_newstate();
  lauxlib.luaL_requiref(state, to_luastring("_G"), lualib.luaopen_base, true);
  lauxlib.luaL_requiref(state, to_luastring("table"), lualib.luaopen_table, true);
  const program = `obj = ${luaLiteral(object)}\nlocal function check()\n${script}\nend\nlocal found = check()\nreturn found.status, found.message`;
  const failed = lauxlib.luaL_loadstring(state, to_luastring(program)) || lua.lua_pcall(state, 0, 2, 0);
  if (failed !== lua.LUA_OK) assert.fail(lua.lua_tojsstring(state, -1));
  return { health: lua.lua_tojsstring(state, -2) as Health, message: lua.lua_tojsstring(state, -1) };
}

function luaLiteral(value: unknown): string {
  if (Array.isArray(value)) return `{${value.map(luaLiteral).join(",")}}`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value ?? null).replace(/^null$/, "nil");
  return `{${Object.entries(value)
    .map(([name, each]) => `[${JSON.stringify(name)}]=${luaLiteral(each)}`)
    .join(",")}}`;
}

function fluxRule({ kind, apiVersion }: Stated) {
  return spec.healthCheckExprs.find((each) => each.kind === kind && each.apiVersion === apiVersion);
}

/** In the order of Flux; undefined: it has no rule. */
function fluxHealth(object: Stated): Health | undefined {
  const rule = fluxRule(object);
  if (rule === undefined) return undefined;
  const variables = celValue(object) as Record<string, unknown>;
  const holds = (expression: string): boolean => compiled(expression)(variables) === true;
  if (holds(rule.inProgress)) return "Progressing";
  if (holds(rule.failed)) return "Degraded";
  return holds(rule.current) ? "Healthy" : "Progressing";
}

function compiled(expression: string): ReturnType<Environment["parse"]> {
  const found = programs.get(expression) ?? cel.parse(expression);
  programs.set(expression, found);
  return found;
}

/** Whole numbers are integers. */
function celValue(value: unknown): unknown {
  if (typeof value === "number" && Number.isInteger(value)) return BigInt(value);
  if (Array.isArray(value)) return value.map(celValue);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, celValue(each)]));
}

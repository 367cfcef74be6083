/** What changed objects would do to the requests of three proxies, judged on a real cluster before anything is applied. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { GatewayImpact } from "../../src/impact/merge.ts";
import type { RequestRecord } from "../../src/recorder/records.ts";
import { get } from "./lib/http.ts";
import { echoYaml, routeYaml } from "./lib/objects.ts";
import { applyReplicated } from "./lib/replicated.ts";
import { apply, eventually, getJson, kubectl, tgctl } from "./lib/tools.ts";

const NS = "e2e-impact";
const HOST = "impact.example.com";
const TARGET = ["gateway/web", "-n", NS];
const folder = mkdtempSync(join(tmpdir(), "impact-"));
let address = "";

before(async () => {
  address = await applyReplicated(NS, HOST);
  await apply(echoYaml(NS, "other", 1));
  await kubectl("-n", NS, "rollout", "status", "deployment/other", "--timeout=180s");
  const { items } = await getJson<{ items: { metadata: { name: string } }[] }>(
    ...["-n", NS, "pods", "-l", "gateway.networking.k8s.io/gateway-name=web"],
  );
  // Each pod has samples of its own.
  await eventually("a request at each pod", async () => {
    assert.equal((await get({ address, host: HOST, path: "/admin/1" })).status, 200);
    const { stdout } = await tgctl("recent", ...TARGET, "--where", 'request.path == "/admin/1"', "-o", "json");
    const { records } = JSON.parse(stdout) as { records: (RequestRecord & { readonly pod: string })[] };
    return items.every(({ metadata }) => records.some(({ pod }) => pod === metadata.name));
  });
});

after(() => {
  rmSync(folder, { recursive: true });
  return kubectl("delete", "namespace", NS, "--wait=false");
});

function file(yaml: string): string {
  const path = join(folder, "objects.yaml");
  writeFileSync(path, yaml);
  return path;
}

async function impactOf(yaml: string): Promise<GatewayImpact & { readonly objects: { problems: unknown[] } }> {
  const { code, stdout, stderr } = await tgctl("impact", ...TARGET, "-f", file(yaml), "-o", "json");
  assert.equal(code, 0, stderr);
  return JSON.parse(stdout);
}

/** The requests for `/admin` that all pods have got. */
async function requested(): Promise<number> {
  const { stdout } = await tgctl("recent", ...TARGET, "--where", 'request.path == "/admin/1"', "-o", "json");
  return (JSON.parse(stdout) as { records: unknown[] }).records.length;
}

test("requests that a changed route moves, of all pods together", async () => {
  const expected = await requested();
  const { classes, changes, objects } = await impactOf(routeYaml(NS, "main", "web", HOST, "/", "other"));
  assert.ok(classes.movedBackend.requests >= expected, JSON.stringify(classes));
  const [moved] = changes;
  assert.equal(moved?.class, "movedBackend");
  assert.match(`${moved.before.backend} ${moved.after.backend}`, /echo\S* \S*other/);
  assert.deepEqual(objects.problems, []);
});

test("requests that a new policy refuses, and the rule of the object that does it", async () => {
  const policy = `
apiVersion: tracegate.dev/v1alpha1
kind: TracegatePolicy
metadata: {name: rules, namespace: ${NS}}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: main}]
  traffic: {authorization: {rules: [{deny: 'request.path.startsWith("/admin")'}]}}
`;
  const { code, stdout } = await tgctl("impact", ...TARGET, "-f", file(policy), "--fail-on", "refused");
  assert.equal(code, 1, stdout);
  assert.match(
    stdout,
    /refused with 403 by authorization at TracegatePolicy e2e-impact\/rules spec\.traffic\.authorization\.rules\[0\]/,
  );
  assert.equal((await get({ address, host: HOST, path: "/admin/1" })).status, 200);
  const { items } = await getJson<{ items: unknown[] }>("-n", NS, "tracegatepolicies");
  assert.deepEqual(items, []);
});

test("what the API server rejects, and what the controller would not accept", async () => {
  const invalid = await tgctl(
    ...["impact", ...TARGET, "-f", file(routeYaml(NS, "main", "web", HOST, "not-a-path", "echo"))],
  );
  assert.equal(invalid.code, 1);
  assert.match(invalid.stderr, /the API server does not accept HTTPRoute e2e-impact\/main: .*value/s);
  const { objects, classes } = await impactOf(routeYaml(NS, "main", "web", HOST, "/", "gone"));
  assert.match(JSON.stringify(objects.problems), /BackendNotFound/);
  assert.ok(classes.refused.requests > 0);
});

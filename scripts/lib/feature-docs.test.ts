import assert from "node:assert/strict";
import { test } from "node:test";
import { SUPPORTED_FEATURES } from "../../src/controller/status/features.ts";
import { featureTable } from "./feature-docs.ts";
import { readText } from "./files.ts";

test("every feature that the GatewayClass claims is in the table once, beside its object", () => {
  const table = featureTable();
  const listed = [...table.matchAll(/`(\w+)`/g)].map(([, name]) => name);
  assert.deepEqual(listed.toSorted(), SUPPORTED_FEATURES.map(({ name }) => name).toSorted());
  assert.match(table, /^\| TLSRoute \| `TLSRoute`, `TLSRouteModeMixed`/m);
});

test("the objects that the page shows first are those of the example", () => {
  const [, shown = ""] = /```yaml\n([\s\S]*?)```/.exec(readText("docs/kubernetes.md")) ?? [];
  assert.match(shown, /kind: Gateway[\s\S]*kind: HTTPRoute/);
  assert.ok(readText("install/examples/hello.yaml").endsWith(shown));
});

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { TestApiServer } from "../../../test/helpers/kube/api-server.ts";
import { Refused } from "../../../test/helpers/kube/store.ts";
import { RESOURCES } from "../../kube/resources.ts";
import { CliError } from "../runner/errors.ts";
import { dryRun, readManifests } from "./manifests.ts";

/** A folder with these files. */
function folder(t: TestContext, files: Readonly<Record<string, string>>): string {
  const path = mkdtempSync(join(tmpdir(), "manifests-"));
  t.after(() => rmSync(path, { recursive: true }));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(path, name), text);
  return path;
}

const ROUTE = "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: { name: a }\n";

test("the objects of a folder, its lists and documents, each with its namespace", (t) => {
  const path = folder(t, {
    "b.json": `{"apiVersion": "v1", "kind": "List", "items": [
      {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "app", "namespace": "other"}},
      {"apiVersion": "serving.knative.dev/v1", "kind": "Service", "metadata": {"name": "app"}}]}`,
    "a.yaml": `---\n${ROUTE}---\n# nothing\n---\napiVersion: v1\nkind: Namespace\nmetadata: { name: shop }\n`,
    "c.yml": "apiVersion: gateway.networking.k8s.io/v1beta1\nkind: HTTPRoute\nmetadata: { name: old }\nitems: []\n",
    "notes.txt": "not: an object",
  });
  const found = readManifests([path], "shop").map(({ name, object, resource }) => [name, object.metadata, resource]);
  assert.deepEqual(found, [
    ["HTTPRoute shop/a", { name: "a", namespace: "shop" }, RESOURCES.HTTPRoute],
    ["Namespace shop", { name: "shop" }, RESOURCES.Namespace],
    ["Service other/app", { name: "app", namespace: "other" }, RESOURCES.Service],
    ["Service shop/app", { name: "app", namespace: "shop" }, undefined],
    ["HTTPRoute shop/old", { name: "old", namespace: "shop" }, { ...RESOURCES.HTTPRoute, version: "v1beta1" }],
  ]);
});

test("what cannot be read is said with its position", (t) => {
  const path = folder(t, { "a.yaml": `${ROUTE}---\nkind: HTTPRoute\n`, "b.yaml": "a: [1\n", "c.txt": "" });
  const fails = (file: string, message: RegExp) =>
    assert.throws(
      () => readManifests([join(path, file)], "shop"),
      (error) => error instanceof CliError && message.test(error.message),
    );
  fails("a.yaml", /a\.yaml:5: not an object of Kubernetes/);
  fails("b.yaml", /b\.yaml:2:1: /);
  assert.throws(
    () => readManifests([folder(t, { "c.txt": "" })], "shop"),
    /the folder has no file that ends in \.yaml/,
  );
  fails("gone.yaml", /cannot read .*gone\.yaml: /);
  fails("", /a\.yaml:5/);
});

test("a dry run stores nothing, and keeps the labels and annotations of others", async (t) => {
  const server = await TestApiServer.start();
  t.after(() => server[Symbol.asyncDispose]());
  const signal = new AbortController().signal;
  const [manifest] = readManifests([join(folder(t, { "a.yaml": ROUTE }), "a.yaml")], "shop");
  assert.ok(manifest?.resource !== undefined);
  const written = { ...manifest, resource: manifest.resource };
  const created = await dryRun(server.client(), written, signal);
  assert.deepEqual((created as { metadata: unknown }).metadata, { name: "a", namespace: "shop" });
  assert.equal(server.get("HTTPRoute", "shop/a"), undefined);

  const metadata = { name: "a", namespace: "shop", labels: { of: "others", their: "own" }, annotations: { a: "b" } };
  server.set({ apiVersion: "gateway.networking.k8s.io/v1", kind: "HTTPRoute", metadata });
  const before = server.get("HTTPRoute", "shop/a");
  const object = {
    ...manifest.object,
    metadata: { name: "a", namespace: "shop", labels: { of: "ours", and: "more" } },
  };
  const updated = await dryRun(server.client(), { ...written, object }, signal);
  const { labels, annotations } = (updated as { metadata: { labels: unknown; annotations: unknown } }).metadata;
  assert.deepEqual(labels, { of: "ours", their: "own", and: "more" });
  assert.deepEqual(annotations, { a: "b" });
  assert.deepEqual(server.get("HTTPRoute", "shop/a"), before);

  // Somebody else writes it between reading and the dry run.
  let writes = 0;
  server.intercept = ({ method }) => {
    if (method === "PUT" && writes++ === 0) throw new Refused(409, "Conflict", "the object has been modified");
  };
  assert.deepEqual(await dryRun(server.client(), { ...written, object }, signal), updated);

  server.intercept = () => {
    throw new Refused(403, "Forbidden", "the user cannot get httproutes");
  };
  server.received.length = 0;
  await assert.rejects(dryRun(server.client(), written, signal), /the API server does not accept HTTPRoute shop\/a/);
  assert.deepEqual(
    server.received.map(({ method }) => method),
    ["GET"],
    "what cannot be read is not taken for missing",
  );
});

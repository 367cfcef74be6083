import assert from "node:assert/strict";
import { test } from "node:test";
import { deploymentName } from "./manifest.ts";

test("a Gateway of any name has a Service of a valid one, which no other Gateway has", () => {
  assert.equal(deploymentName("web"), "web");
  const long = "web".repeat(30);
  const names = ["a.b", "a-b", "1web", "web1", "gw-a-b", `${long}.example`, long, `${long}1`];
  const services = names.map(deploymentName);
  assert.equal(new Set(services).size, names.length);
  for (const service of services) assert.match(service, /^[a-z][-a-z0-9]{0,61}[a-z0-9]$/);
});

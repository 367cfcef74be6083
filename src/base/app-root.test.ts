import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { appRoot, moduleUrl } from "./app-root.ts";

test("appRoot is the folder of package.json", () => {
  assert.equal(JSON.parse(readFileSync(`${appRoot}package.json`, "utf8")).name, "tracegate");
});

test("moduleUrl names a module of this checkout", () => {
  assert.equal(moduleUrl("base/app-root").href, new URL("./app-root.ts", import.meta.url).href);
  assert.ok(existsSync(moduleUrl("base/app-root")));
});

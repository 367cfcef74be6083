import assert from "node:assert/strict";
import { test } from "node:test";
import { unpackIr } from "../ir/packed-ir.ts";
import { NO_RESOURCES } from "../translation/resources/store.ts";
import { type ConfigSource, loadConfig } from "./load.ts";
import { loadConfigAside, packLoaded } from "./load-thread.ts";

const ROUTES = 200;
const route = (i: number): string =>
  `- {name: route-${i}, hostnames: [h${i % 100}.example], matches: [{path: {pathPrefix: /p/${i}}}], backends: [{host: "b:${1 + (i % 65535)}"}]}`;
/** Padded, because only files of a certain size are loaded in a thread of their own. */
const large = (tail: string): string =>
  `# ${" ".repeat(256 * 1024)}\ngateways: {default: {port: 8080}}\nroutes:\n${Array.from({ length: ROUTES }, (_, i) => route(i)).join("\n")}\n${tail}`;

function loadedIr(source: ConfigSource): unknown {
  const loaded = loadConfig(source, {});
  return loaded.ok ? loaded.ir : loaded.diagnostics;
}

for (const [name, text] of [
  ["large and valid", large("config: {logging: {level: $LEVEL}}\n")],
  ["large and wrong", large("- {nme: x}\n")],
  ["small and valid", "binds: []\n"],
] as const)
  test(`a separate thread gives the same result: ${name}`, async () => {
    const source = { kind: "text", text, name: "test.yaml" } as const;
    const env = { LEVEL: "debug" };
    assert.deepEqual(await loadConfigAside(source, env), packLoaded(loadConfig(source, env)));
  });

test("while a large configuration is loaded, the caller's thread continues", async () => {
  let turns = 0;
  const turning = setInterval(() => turns++, 1);
  try {
    await loadConfigAside({ kind: "text", text: large("") }, {});
  } finally {
    clearInterval(turning);
  }
  assert.ok(turns > 1);
});

test("when a large configuration is loaded again, only changed routes are written as text", async () => {
  const first = await loadConfigAside({ kind: "text", text: large("") }, {});
  assert.ok(first.ok);
  const changed = { kind: "text", text: large(route(ROUTES)) } as const;
  const second = await loadConfigAside(changed, {}, NO_RESOURCES, first.configuration);
  assert.ok(second.ok);
  assert.deepEqual(unpackIr(second.configuration), loadedIr(changed));
  const [routes] = second.configuration.routes;
  assert.deepEqual(
    routes?.pieces.map(({ offsets }) => offsets.length - 1),
    [ROUTES, 1],
  );
});

test("a file that does not exist is a diagnostic, not an exception", async () => {
  const result = await loadConfigAside({ kind: "files", paths: ["/nowhere/gateway.yaml"] }, {});
  assert.ok(!result.ok);
  assert.match(result.diagnostics[0]?.message ?? "", /does not exist/);
});

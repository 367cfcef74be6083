import assert from "node:assert/strict";
import { test } from "node:test";
import { type CatalogFunction, catalogOf } from "./catalog.ts";
import { FUNCTIONS } from "./functions/functions.ts";
import { isMacro, MACROS } from "./syntax/macros.ts";

test("a catalog has the variables of its scope only, each before its fields", () => {
  const { variables } = catalogOf("record", "");
  const names = variables.map(({ name }) => name);
  assert.deepEqual(names.slice(0, 3), ["request", "request.method", "request.uri"]);
  assert.deepEqual(
    variables.filter(({ name }) => name === "duration" || name.startsWith("backend")),
    [
      { name: "backend", type: "record", fields: true },
      { name: "backend.name", type: "dyn" },
      { name: "duration", type: "google.protobuf.Duration" },
    ],
  );
  assert.ok(!names.includes("jwt") && !names.includes("request.headers"), "nothing that is not recorded");
  assert.ok(catalogOf("request", "").variables.some(({ name }) => name === "proxy.route.name"));
});

test("every function and macro is there with an example, in the forms in which it is called", () => {
  const { functions } = catalogOf("record", "");
  const of = (name: string): CatalogFunction[] => functions.filter((each) => each.name === name);
  for (const name of [...FUNCTIONS.keys()].filter((each) => /^[\w.]+$/.test(each)))
    assert.ok(
      of(name).some(({ example }) => example?.[0].includes(`${name}(`)),
      name,
    );
  for (const { name } of MACROS) {
    assert.ok(isMacro(name.replace(/\..*/, "")), name);
    assert.ok(
      of(name).some(({ example }) => example?.[0].includes(`${name}(`)),
      name,
    );
  }
  assert.deepEqual(of("startsWith"), [
    {
      name: "startsWith",
      group: "Text",
      of: ["string"],
      signatures: ["(string): bool"],
      example: ['request.path.startsWith("/a/")', "true"],
    },
  ]);
  const [asFunction, asMethod] = of("matches").sort((a, b) => a.signatures.join().length - b.signatures.join().length);
  assert.deepEqual(asFunction?.of, ["string"]);
  assert.deepEqual(asMethod?.signatures, ["(string, string): bool"]);
  assert.deepEqual(of("exists"), [
    { name: "exists", group: "Lists and maps", of: [], signatures: [], example: of("exists")[0]?.example },
  ]);
});

test("functions of the configuration come first, as they are defined", () => {
  const { functions } = catalogOf("request", "this.under(prefix) { this == prefix }\ninsider() { jwt.internal }");
  assert.deepEqual(functions.slice(0, 2), [
    { name: "under", group: "Functions of the configuration", of: [], signatures: ["this.under(prefix)"] },
    { name: "insider", group: "Functions of the configuration", signatures: ["insider()"] },
  ]);
});

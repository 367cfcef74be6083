import assert from "node:assert/strict";
import { test } from "node:test";
import { configJsonSchema, editorJsonSchema } from "./config-schema.ts";

test("in an editor a variable may stand where a number, a choice or a name has to be", () => {
  const { $defs } = editorJsonSchema();
  const variable = { type: "string", pattern: "^\\$[A-Za-z_{]" };
  const { port, protocol } = $defs?.Gateway?.properties ?? {};
  assert.equal(port?.description, "TCP port; 0 lets the system choose.");
  assert.deepEqual(port?.anyOf, [{ type: "integer", minimum: 0, maximum: 65535 }, variable]);
  assert.deepEqual(protocol?.anyOf, [{ type: "string", enum: ["HTTP", "HTTPS", "TCP", "TLS"] }, variable]);
  assert.deepEqual($defs?.Route?.properties?.name?.anyOf?.[1], variable);
  assert.equal(configJsonSchema().$defs?.Gateway?.properties?.port?.type, "integer");
});

test("everything that can be written has a description", () => {
  const schema = configJsonSchema();
  const mute: string[] = [];
  for (const [name, definition] of Object.entries({ ...schema.$defs, "": schema }))
    for (const [field, { description, $ref }] of Object.entries(definition.properties ?? {}))
      if (description === undefined && $ref === undefined) mute.push(`${name}.${field}`);
  assert.deepEqual(mute, []);
});

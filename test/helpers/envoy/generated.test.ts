import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { type DescField, ScalarType } from "@bufbuild/protobuf";
import { generatedMessages } from "./generated.ts";

type Field = readonly [number: number, kind: string, shape: string];

/** Of Envoy and of OpenTelemetry, as they publish them. */
const PUBLISHED: Readonly<Record<string, Readonly<Record<string, Field>>>> = Object.assign(
  {},
  ...["descriptors.json", "../otlp/descriptors.json"].map((name) =>
    JSON.parse(readFileSync(new URL(name, import.meta.url), "utf8")),
  ),
);

test("every generated message has the published names, numbers and kinds of fields", async () => {
  const messages = await generatedMessages();
  assert.ok(messages.length > 40);
  const others = messages.filter(({ typeName }) => !typeName.startsWith("tracegate."));
  for (const { typeName, fields } of others)
    for (const field of fields)
      assert.deepEqual(
        [field.number, kindOf(field), shapeOf(field)],
        PUBLISHED[typeName]?.[field.name],
        `${typeName}.${field.name}`,
      );
});

function shapeOf({ fieldKind }: DescField): string {
  return fieldKind === "list" || fieldKind === "map" ? fieldKind : "one";
}

function kindOf(field: DescField): string {
  if (field.message !== undefined) return field.message.typeName;
  return field.enum !== undefined ? "enum" : (ScalarType[field.scalar] ?? "").toLowerCase();
}

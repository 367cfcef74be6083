import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { CheckRequest, CheckResponse } from "./auth.ts";
import { allTables } from "./tables.ts";
import { MessageType } from "./wire.ts";

type Published = Record<string, Record<string, [number: number, kind: string, shape: string]>>;

/** Kinds that have the same form on the wire as those of the tables. */
const KINDS: Readonly<Record<string, string>> = {
  enum: "int32",
  uint64: "int64",
  "google.protobuf.Struct": "struct",
};

test("every message has the published names, numbers and kinds of fields", () => {
  const file = new URL("descriptors.json", import.meta.url);
  const published = JSON.parse(readFileSync(file, "utf8")) as Published;
  const tables = allTables();
  for (const [name, fields] of tables)
    for (const [field, [number, kind, shape = "one"]] of Object.entries(fields)) {
      const [wantedNumber, wantedKind = "", wantedShape] = published[name]?.[field] ?? [];
      assert.deepEqual(
        [number, kind instanceof MessageType ? kind.name : kind, shape],
        [wantedNumber, KINDS[wantedKind] ?? wantedKind, wantedShape],
        `${name}.${field}`,
      );
    }
});

test("what is written is read again, nested messages, lists, maps and structs included", () => {
  const request = {
    attributes: {
      source: { address: { socket_address: { address: "::1", port_value: 4711 } } },
      request: { http: { headers: { ":path": "/ä", __proto__x: "1" }, size: -1, raw_body: Uint8Array.of(0, 255) } },
      metadata_context: {
        filter_metadata: { ns: { text: "t", number: -1.5, yes: true, none: null, list: [1, [], { a: "b" }] } },
      },
    },
  };
  const read = CheckRequest.decode(CheckRequest.encode(request));
  assert.deepEqual(JSON.parse(JSON.stringify(read)), JSON.parse(JSON.stringify(request)));
});

test("fields that a table does not know are skipped", () => {
  const Status = new MessageType("test.Status", { code: [1, "int32"] });
  const More = new MessageType("test.More", { later: [99, "string"], status: [1, Status] });
  const bytes = More.encode({ later: "x", status: { code: 7 } });
  assert.deepEqual(CheckResponse.decode(bytes), { status: { code: 7 } });
});

test("bytes that are not a message are an error", () => {
  assert.throws(() => CheckResponse.decode(Uint8Array.of(0x0a, 0x7f, 0x01)));
});

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Replica } from "../../src/admin/plane/replicas.ts";
import { replicaNotes } from "./replica-notes.ts";

function replica(name: string, hash: string | null, generation: number): Replica {
  return { name, configuration: { hash, generation, synchronized: true } };
}

test("replicas with one configuration are not worth a word, whatever their own numbers", () => {
  assert.deepEqual(replicaNotes([]), []);
  assert.deepEqual(replicaNotes([replica("web-1", "a", 4), replica("web-2", "a", 1)]), []);
});

test("what is missing, and who has which configuration, is said", () => {
  const lost: Replica = { name: "web-3", problem: "connection refused" };
  assert.deepEqual(replicaNotes([replica("web-1", "a", 4), replica("web-2", "b", 1), lost]), [
    "What web-3 knows is missing here: connection refused",
    "Not all replicas have the same configuration: web-1 has 4; web-2 has 1",
  ]);
});

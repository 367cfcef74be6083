import assert from "node:assert/strict";
import { after, test } from "node:test";
import { decodeProfile, flatten, kinds, ProfiledThread } from "../../../test/helpers/admin/profiles.ts";
import { heapProfile } from "../../worker/profiles.ts";
import { mergeHeapProfiles } from "./heap.ts";

const thread = new ProfiledThread();
after(() => thread.stop());

test("a heap profile shows where live objects were allocated", async () => {
  await thread.ask("heap");
  await thread.ask("keep", 16 * 1024 * 1024);
  const threads = [
    { thread: "main", profile: await heapProfile() },
    { thread: "worker-0", profile: await thread.ask<Awaited<ReturnType<typeof heapProfile>>>("heap") },
  ];
  const bytes = await mergeHeapProfiles(threads);
  const profile = decodeProfile(bytes);
  assert.deepEqual(kinds(profile), ["inuse_space/bytes"]);
  const kept = flatten(profile).filter(
    ({ stack, thread }) => stack.includes("keepInWorker") && thread === "thread=worker-0",
  );
  const total = kept.reduce((sum, { values }) => sum + (values[0] ?? 0), 0);
  assert.ok(total > 8 * 1024 * 1024, `${total} bytes of 16 MiB seen`);

  await thread.ask("drop");
  const profileAfter = await thread.ask<Awaited<ReturnType<typeof heapProfile>>>("heap");
  const dropped = await mergeHeapProfiles([{ thread: "worker-0", profile: profileAfter }]);
  const left = flatten(decodeProfile(dropped)).filter(({ stack }) => stack.includes("keepInWorker"));
  assert.ok(left.reduce((sum, { values }) => sum + (values[0] ?? 0), 0) < total / 4, "dead objects are not in it");
});

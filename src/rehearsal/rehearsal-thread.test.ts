import assert from "node:assert/strict";
import { test } from "node:test";
import { irOf } from "../../test/helpers/supervisor.ts";
import { NO_RESOURCES } from "../translation/resources/store.ts";
import { RehearsalBusy, RehearsalThread } from "./rehearsal-thread.ts";

const SETTINGS = { sensitiveHeaders: [], perRequest: 1000, sessionKey: new Uint8Array(32) };
const configuration = irOf({
  binds: [{ port: 8080, listeners: [{ routes: [{ policies: { directResponse: { status: 204 } } }] }] }],
});

test("questions are taken one after the other; too many that wait are rejected", async () => {
  const thread = new RehearsalThread(SETTINGS, {
    state: () => ({
      configuration,
      ports: {},
      resources: NO_RESOURCES,
      notices: { evictions: [], healths: [], names: [] },
    }),
    endpoints: async () => [],
  });
  try {
    const ask = () => thread.explain({ request: { url: "http://a/", headers: [], body: "" } });
    const all = await Promise.allSettled(Array.from({ length: 17 }, ask));
    const statuses = all.map((each) => (each.status === "fulfilled" ? each.value.outcomes[0]?.status : each.reason));
    assert.ok(statuses.pop() instanceof RehearsalBusy);
    assert.deepEqual(statuses, Array(16).fill(204));
    // There is room again, also after the thread has ended.
    await thread.close();
    assert.equal((await ask()).outcomes[0]?.status, 204);
  } finally {
    await thread.close();
  }
});

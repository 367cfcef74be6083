import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { dial, head } from "../../../test/helpers/admin/raw-request.ts";
import { TestAdmin } from "../../../test/helpers/admin/test-admin.ts";

const admin = new TestAdmin();
const { plane } = admin;

test("events for a slow reader are bounded; the hub is notified when there is room again", async () => {
  const arriving = plane.nextTrace();
  const socket = dial(admin.address);
  socket.write(head("POST", "/debug/trace"));
  socket.pause();
  const trace = await arriving;
  const event = JSON.stringify({ padding: "x".repeat(64 * 1024) });
  let taken = 0;
  // The system's socket buffers take some megabytes before the server's own buffer fills; each turn lets it write.
  while (trace.reader.event(event)) {
    taken++;
    assert.ok(taken < 2000, "the buffer is bounded");
    await new Promise(setImmediate);
  }
  const drained = new Promise<void>((resolve) => {
    trace.reader.onDrain = resolve;
  });
  let received = 0;
  socket.on("data", (chunk) => {
    received += chunk.length;
  });
  socket.resume();
  await drained;
  assert.equal(trace.reader.event('{"type":"dropped"}'), true);
  trace.reader.end();
  await once(socket, "close");
  assert.ok(received > taken * event.length, "what was taken was delivered");
});

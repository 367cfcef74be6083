import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { dial, head } from "../../../test/helpers/admin/raw-request.ts";
import { TestAdmin } from "../../../test/helpers/admin/test-admin.ts";

const admin = new TestAdmin();
const { plane } = admin;

test("profiles take bounded parameters", async () => {
  const cpu = await admin.ask("GET", "/debug/pprof/profile?seconds=300&frequency=1000");
  assert.deepEqual([cpu.status, cpu.body], [200, "cpu"]);
  assert.match(cpu.head, /content-disposition: attachment; filename="cpu.pb.gz"/i);
  await admin.ask("GET", "/debug/pprof/profile");
  assert.deepEqual(
    plane.profiles.map(({ seconds, hz }) => [seconds, hz]),
    [
      [300, 1000],
      [10, 100],
    ],
  );
  for (const query of ["seconds=0", "seconds=301", "seconds=1.5", "seconds=", "seconds=-1", "seconds=1e2"]) {
    const { status, body } = await admin.ask("GET", `/debug/pprof/profile?${query}`);
    assert.equal(status, 400, query);
    assert.match(body, /^invalid seconds "[^"]*": expected an integer from 1 to 300\n$/);
  }
  assert.match(
    (await admin.ask("GET", "/debug/pprof/profile?frequency=1001")).body,
    /^invalid frequency "1001": .* 1 to 1000\n$/,
  );
  assert.equal((await admin.ask("GET", "/debug/pprof/heap")).body, "heap");
});

test("a profile stops when its client disconnects", async () => {
  plane.holdProfiles = true;
  const before = plane.profiles.length;
  const socket = dial(admin.address);
  socket.write(head("GET", "/debug/pprof/profile"));
  await plane.until(() => plane.profiles.length > before);
  const signal = plane.profiles[before]?.signal;
  assert.ok(signal);
  const aborted = once(signal, "abort");
  socket.destroy();
  await aborted;
  plane.holdProfiles = false;
});

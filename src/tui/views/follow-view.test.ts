/** The view of many requests in a real terminal, of a server that streams what the test says. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import type { ServerResponse } from "node:http";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { TGCTL } from "../../../test/helpers/programs.ts";
import type { Fields } from "../../base/fields.ts";
import { serve } from "../../cli/fixtures/admin.ts";
import { eventsOf } from "../fixtures/follow.ts";
import { open, restored, skip } from "../fixtures/terminal.ts";

/** An admin server with one stream, which goes on after its connection has broken off. */
async function followedAdmin(t: TestContext) {
  const readers: ServerResponse[] = [];
  const resumed: string[] = [];
  const connected = Promise.withResolvers<void>();
  let id = 0;
  const admin = await serve(t, (request, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" }).write(": ready\n\n");
    resumed.push(String(request.headers["last-event-id"]));
    readers.push(response);
    connected.resolve();
  });
  const send = (...events: readonly Fields[]) => {
    for (const event of events) readers.at(-1)?.write(`id: ${++id}\ndata: ${JSON.stringify(event)}\n\n`);
  };
  const notice = (message: Fields) => send({ request: null, eventStart: null, eventEnd: 0, severity: "info", message });
  return {
    port: admin.port,
    connected: connected.promise,
    resumed,
    send,
    notice,
    breakOff: () => readers.at(-1)?.destroy(),
  };
}

test("requests are listed as they arrive, filtered, opened and saved; the end of the stream is said", {
  skip,
}, async (t) => {
  const admin = await followedAdmin(t);
  const terminal = await open(t, `${TGCTL} trace --local --follow --proxy-admin-port ${admin.port}`);
  await terminal.until("the empty view", (now) => now.includes("waiting for requests"));
  await terminal.keys("w");
  await terminal.until("the answer to w", (now) => now.includes("no event to save yet"));
  admin.send(...eventsOf(1, { path: "/no", status: 403, denied: true }), ...eventsOf(2, { path: "/yes" }));
  await terminal.until("the newest request", (now) => /›04:05:02 {2}GET \/yes +200 +2 ms {2}route api/.test(now));
  await terminal.keys("k");
  await terminal.until("the first request on the event that decided", (now) =>
    /›5 .* Authz +denied: deny rules/.test(now),
  );
  admin.send(...eventsOf(3, { path: "/later" }));
  const still = await terminal.until("that there is a newer one", (now) => now.includes("standing still, 2 newer"));
  assert.match(
    still,
    /^ GET http:\/\/shop\.example\/no +403 {2}2 ms\n route api · denied: deny rules\[0\] is true: blocked/,
  );

  await terminal.keys("/", "lat");
  await terminal.until("the filter", (now) => now.includes("/lat█") && now.includes("›04:05:03  GET /later"));
  await terminal.keys("Enter");
  await terminal.until("how many pass", (now) => now.includes('1 of 3 requests with "lat"'));
  await terminal.keys("Escape");
  await terminal.until("all of them", (now) => now.includes("GET /no") && now.includes("GET /yes"));
  await terminal.keys("g", "Enter");
  await terminal.until("events and details", (now) => /╭─ Events #1 ─.*\n(.*\n)+╭─ Raw event · at 1 ms/.test(now));
  await terminal.keys("w");
  await terminal.until("the file", (now) => now.includes("saved as trace-20260203-040501.jsonl"));
  const saved = readFileSync(join(terminal.folder, "trace-20260203-040501.jsonl"), "utf8");
  assert.doesNotMatch(saved, /"request":1/, "as that of one trace");
  assert.equal(saved.trimEnd().split("\n").length, 1 + eventsOf(1, { path: "/no", denied: true }).length);

  await terminal.resize(120, 40);
  await terminal.until("the list beside the rest", (now) => /^╭─ Requests .*╮╭─ Events #1/m.test(now));
  await terminal.resize(200, 50);
  await terminal.until("three columns", (now) => /^╭─ Requests .*╮╭─ Events #1 .*╮╭─ Raw event/m.test(now));
  await terminal.keys("Tab", "Tab", "G");
  await terminal.until("the newest again", (now) => now.includes("following the newest"));
  admin.notice({ type: "followEnded", reason: "time", requests: 3, unfinished: 0 });
  await terminal.until("the end", (now) => now.includes("3 requests · stream complete"));
  // tmux itself cannot restore a screen that has grown twice.
  await terminal.resize(80, 24);
  await terminal.until(
    "the end on a small screen",
    (now) => now.split("\n")[2]?.length === 80 && now.includes("stream complete"),
  );
  await terminal.keys("Escape");
  await terminal.until("the screen as before", restored(0));
});

test("missing events and a connection that breaks off are said; the list goes on", { skip }, async (t) => {
  const admin = await followedAdmin(t);
  const terminal = await open(t, `${TGCTL} trace --local --follow --proxy-admin-port ${admin.port}`);
  await terminal.until("the empty view", (now) => now.includes("waiting for requests"));
  admin.send(...eventsOf(1, { path: "/a" }));
  admin.notice({ type: "dropped", count: 12, requests: 3 });
  await terminal.until("what is missing", (now) => now.includes("12 events are missing"));
  admin.breakOff();
  await terminal.until("that it is connected again", (now) => now.includes("connected again"));
  assert.deepEqual(admin.resumed, ["undefined", "6"]);
  admin.send(...eventsOf(2, { path: "/b" }));
  await terminal.until("the next request", (now) => now.includes("›04:05:02  GET /b"));
  await terminal.keys("q");
  await terminal.until("the screen as before", restored(0));
});

test("a terminal that cannot show the view gets a line for each request, and a note", { skip }, async (t) => {
  const admin = await followedAdmin(t);
  const follow = `TERM=dumb ${TGCTL} trace --local --follow --proxy-admin-port ${admin.port}`;
  const terminal = await open(t, follow);
  await terminal.until("the note", (now) => now.includes("cannot show a full-screen view"));
  await admin.connected;
  admin.send(...eventsOf(1, { path: "/a" }));
  admin.notice({ type: "followEnded", reason: "count", requests: 1, unfinished: 0 });
  const screen = await terminal.until("the end", (now) => now.includes("exit code"));
  assert.match(screen, /#1 {2}GET http:\/\/shop\.example\/a → 200 in 2 ms/);
});

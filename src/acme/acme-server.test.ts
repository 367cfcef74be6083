import assert from "node:assert/strict";
import { test } from "node:test";
import type { Fetch } from "../upstream/callouts/fetch.ts";
import { AcmeError, AcmeServer } from "./acme-server.ts";

const DIRECTORY = "https://acme.example/directory";

/** A server whose answers are released one by one, and what it was asked. */
function heldServer() {
  const asked: string[] = [];
  const held: (() => void)[] = [];
  let most = 0;
  const fetch: Fetch = async (url) => {
    asked.push(url);
    await new Promise<void>((resolve) => {
      held.push(resolve);
      most = Math.max(most, held.length);
    });
    const body = { newNonce: "n", newAccount: "a", newOrder: "o", renewalInfo: "https://acme.example/renewal" };
    return { status: 200, headers: [], body: Buffer.from(JSON.stringify(body)) };
  };
  const release = async (): Promise<void> => {
    while (held.length > 0) {
      held.shift()?.();
      await new Promise(setImmediate);
    }
  };
  return { asked, release, most: () => most, server: new AcmeServer(DIRECTORY, undefined, fetch) };
}

test("a thousand certificates that ask at once read the directory once, and few at a time ask further", async () => {
  const { asked, release, most, server } = heldServer();
  const asking = Array.from({ length: 1000 }, async (_, i) => {
    await server.directory();
    await server.get(`https://acme.example/renewal/${i}`);
  });
  await new Promise(setImmediate);
  assert.deepEqual(asked, [DIRECTORY]);
  await release();
  await Promise.all(asking);
  assert.equal(asked.length, 1001);
  assert.equal(new Set(asked).size, 1001);
  assert.equal(most(), 4);
});

test("a directory that cannot be read is not asked for again at once, but later", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  let asked = 0;
  const refusing: Fetch = async () => {
    asked++;
    return { status: 404, headers: [], body: Buffer.from("not here") };
  };
  const server = new AcmeServer(DIRECTORY, undefined, refusing);
  for (let i = 0; i < 3; i++) await assert.rejects(server.directory(), AcmeError);
  assert.equal(asked, 1);
  t.mock.timers.tick(60_000);
  await assert.rejects(server.directory(), /status 404/);
  assert.equal(asked, 2);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { hashSync } from "bcryptjs";
import { TestGateway } from "../../helpers/gateway.ts";
import { RawPeer, statusOf, valuesOf } from "../../helpers/raw-peer.ts";

/** So slow that everything else ends earlier. */
const COST = 12;
/** More than may wait to be checked. */
const GUESSES = 80;

test("wrong passwords do not delay requests without passwords; too many at once are 503", async () => {
  // A dollar sign begins a variable.
  const htpasswd = `user:${hashSync("right", COST)}`.replaceAll("$", "$$$$");
  const answer = (body: string): object => ({ directResponse: { status: 200, body } });
  await using gateway = await TestGateway.start({
    config: { workerThreads: 1 },
    binds: [
      {
        port: 0,
        listeners: [
          {
            routes: [
              {
                matches: [{ path: { pathPrefix: "/closed" } }],
                policies: { basicAuth: { htpasswd, mode: "strict" }, ...answer("in") },
              },
              { policies: answer("open") },
            ],
          },
        ],
      },
    ],
  });
  const port = gateway.port();
  const answered: string[] = [];
  const peers: RawPeer[] = [];
  const busy = new Promise<RawPeer>((resolve) => {
    for (let i = 0; i < GUESSES; i++)
      void RawPeer.connect(port).then(async (peer) => {
        peers.push(peer);
        const credential = Buffer.from(`user:wrong${i}`).toString("base64");
        peer.send(`GET /closed HTTP/1.1\r\nHost: a\r\nAuthorization: Basic ${credential}\r\n\r\n`);
        await peer.until(() => peer.received.includes("\r\n\r\n"), "an answer").catch(() => undefined);
        if (peer.received.startsWith("HTTP/1.1 401")) answered.push("guess");
        if (peer.received.startsWith("HTTP/1.1 503")) resolve(peer);
      });
  });
  const refused = await (await busy).message();
  assert.equal(statusOf(refused), 503);
  assert.deepEqual(valuesOf(refused, "retry-after"), ["1"]);
  assert.equal(refused.body, "basic authentication failure: too many passwords are being checked");

  const client = await RawPeer.connect(port);
  for (let i = 0; i < 20; i++) {
    client.send("GET /open HTTP/1.1\r\nHost: a\r\n\r\n");
    assert.equal((await client.message()).body, "open");
  }
  assert.ok(answered.length < GUESSES / 2, `${answered.length} guesses were answered before`);
  for (const { socket } of [...peers, client]) socket.destroy();
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { RawPeer } from "../../test/helpers/raw-peer.ts";
import { untilTurn } from "../../test/helpers/until.ts";
import { SocketBudget } from "./socket-budget.ts";
import { acceptLocally } from "./testing/acceptor.ts";
import type { Transport } from "./transport.ts";

/** An acceptor whose transports record what they read. */
async function listen(budget: SocketBudget) {
  const transports: Transport[] = [];
  const read: string[] = [];
  const acceptor = await acceptLocally((transport) => {
    transports.push(transport);
    return {
      onData: (buffer, length) => read.push(buffer.toString("latin1", 0, length)),
      onEnd: () => transport.destroy(),
      onDrain: () => {},
      onClose: () => {},
      onFault: () => {},
    };
  }, budget);
  return { acceptor, transports, read, [Symbol.dispose]: () => acceptor.close() };
}

test("held connections are accepted but not read before their release, also after the listening socket has closed", async () => {
  using server = await listen(new SocketBudget());
  const { acceptor, transports, read } = server;
  acceptor.hold();
  const client = await RawPeer.connect(acceptor.port);
  client.send("early");
  await untilTurn(() => acceptor.accepted === 1, "the connection");
  acceptor.close();
  assert.deepEqual([transports.length, read.length], [0, 0]);
  acceptor.release();
  await untilTurn(() => read.length === 1, "what the client has sent");
  assert.deepEqual(read, ["early"]);
  client.end();
  await client.closed();
});

test("connections beyond the budget are closed and counted; one that closes makes room", async () => {
  let refused = 0;
  using server = await listen(new SocketBudget(1, () => refused++));
  const first = await RawPeer.connect(server.acceptor.port);
  await untilTurn(() => server.transports.length === 1, "the first connection");
  const second = await RawPeer.connect(server.acceptor.port);
  await second.closed();
  assert.deepEqual([server.transports.length, refused], [1, 1]);
  first.end();
  await first.closed();
  const third = await RawPeer.connect(server.acceptor.port);
  third.send("room");
  await untilTurn(() => server.read.length === 1, "the third connection");
  assert.equal(refused, 1);
  third.end();
  await third.closed();
});

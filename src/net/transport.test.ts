import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { Transport } from "./transport.ts";

test("tolerated errors leave the connection open; an error of a later turn ends it, with its reason", async () => {
  await using server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const accepted = once(server, "connection");
  const { port } = server.address() as { port: number };
  const client = connect(port, "127.0.0.1");
  const [socket] = (await accepted) as [Socket];
  const [address, remotePort] = ["127.0.0.1", 1];
  const peer = { remoteAddress: address, remotePort, rawAddress: address, rawPort: remotePort };
  const closed = Promise.withResolvers<Error | undefined>();
  Transport.over(socket, { ...peer, localAddress: address, localPort: port }, (transport) => {
    transport.tolerateErrors();
    return { onData: () => {}, onEnd: () => {}, onDrain: () => {}, onClose: closed.resolve, onFault: closed.reject };
  });
  socket.emit("error", new Error("a complaint"));
  await nextTurn();
  assert.equal(socket.destroyed, false);
  socket.emit("error", new Error("a damaged record"));
  assert.equal((await closed.promise)?.message, "a damaged record");
  client.destroy();
});

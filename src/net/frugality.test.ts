import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { afterEach, test } from "node:test";
import { until } from "../../test/helpers/until.ts";
import { beginsToWait, FRUGAL_BYTES, frugal, setMemoryShort, waitsNoMore } from "./frugality.ts";
import { READ_SIZE, ReadBuffer } from "./read-buffer.ts";
import { acceptLocally } from "./testing/acceptor.ts";
import type { Transport } from "./transport.ts";

afterEach(() => setMemoryShort(false));

/** A connection whose client does not read until it is resumed. */
async function deafClient(onDrain: () => void): Promise<{ transport: Transport; client: Socket; close(): void }> {
  const accepted = Promise.withResolvers<Transport>();
  const acceptor = await acceptLocally((transport) => {
    accepted.resolve(transport);
    return { onData() {}, onEnd() {}, onDrain, onClose() {}, onFault() {} };
  });
  const client = connect(acceptor.port, "127.0.0.1").pause();
  await once(client, "connect");
  const transport = await accepted.promise;
  return {
    transport,
    client,
    close() {
      client.destroy();
      transport.destroy();
      acceptor.close();
    },
  };
}

test("a source waits as soon as a client leaves a small piece unread, and goes on once it has been taken", async () => {
  let drained = 0;
  const { transport, client, close } = await deafClient(() => drained++);
  const piece = "x".repeat(FRUGAL_BYTES);
  setMemoryShort(true);
  while (transport.writeText(piece));
  assert.ok(transport.backlog < 2 * FRUGAL_BYTES, `${transport.backlog} bytes wait`);
  assert.equal(drained, 0);
  client.resume();
  await until(() => drained > 0);
  assert.equal(transport.backlog, 0);
  close();
});

test("with enough memory, more may wait", async () => {
  const { transport, close } = await deafClient(() => {});
  const piece = "x".repeat(FRUGAL_BYTES);
  while (transport.writeText(piece));
  assert.ok(transport.backlog >= 32 * 1024, `${transport.backlog} bytes wait`);
  close();
});

test("reads are small while the thread is frugal, and large again after that", () => {
  const reader = new ReadBuffer();
  const shared = reader.next(0);
  assert.equal(shared?.length, READ_SIZE);
  const own = reader.next(READ_SIZE);
  assert.equal(own?.length, READ_SIZE);
  setMemoryShort(true);
  assert.equal(reader.next(READ_SIZE)?.length, FRUGAL_BYTES);
  assert.equal(reader.next(FRUGAL_BYTES), undefined, "the same again");
  setMemoryShort(false);
  assert.equal(reader.next(FRUGAL_BYTES), shared);
  assert.equal(reader.next(READ_SIZE), own, "it was given back");
  reader.close();
});

test("many sources that wait make the thread frugal, until enough are read again or gone", async () => {
  const connections = await Promise.all(Array.from({ length: 3 }, () => deafClient(() => {})));
  let others = 0;
  while (!frugal) {
    beginsToWait();
    others++;
  }
  waitsNoMore();
  assert.equal(frugal, false);
  for (const { transport } of connections) transport.pause();
  assert.equal(frugal, true);
  connections[0]?.transport.pause();
  connections[0]?.transport.resume();
  connections[1]?.transport.resume();
  assert.equal(frugal, true);
  connections[2]?.transport.destroy();
  await until(() => !frugal);
  for (; others > 1; others--) waitsNoMore();
  for (const { close } of connections) close();
});

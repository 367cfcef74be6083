import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { Wire } from "../../../test/fuzz/http2/wire.ts";
import { frugal, setMemoryShort } from "../../net/frugality.ts";
import type { Transport } from "../../net/transport.ts";
import { Acknowledgements } from "./acknowledgements.ts";
import { FrameWriter } from "./frame-writer.ts";
import { DEFAULT_WINDOW } from "./frames.ts";
import { ReceiveFlow } from "./receive-flow.ts";
import { type Http2Settings, LARGEST_WINDOW } from "./settings.ts";
import { StreamTable } from "./stream-table.ts";
import { NotingStream, SETTINGS } from "./testing/pair.ts";

const KIB = 1024;
const STREAM_WINDOW = 64 * KIB;
const CONNECTION_WINDOW = 256 * KIB;
const WINDOWS = {
  streamWindow: STREAM_WINDOW,
  frugalWindow: STREAM_WINDOW,
  connectionWindow: CONNECTION_WINDOW,
  largestWindow: LARGEST_WINDOW,
};
const HANDLER = { onData() {}, onEnd() {}, onDrain() {}, onClose() {}, onFault: assert.fail };

/** A connection's flow, and what its peer may still send. */
class Connection {
  readonly flow: ReceiveFlow;
  readonly #room = new Map([[0, DEFAULT_WINDOW]]);
  #nextId = 1;

  constructor(t: TestContext, changes: Partial<Http2Settings> = {}) {
    let transport: Transport | undefined;
    new Wire(() => {}).connect((made) => {
      transport = made;
      return HANDLER;
    });
    assert.ok(transport !== undefined);
    const writer = new FrameWriter(transport);
    t.mock.method(writer, "windowUpdate", (id: number, increment: number) => {
      this.#room.set(id, this.room(id) + increment);
    });
    const settings = { ...SETTINGS, ...WINDOWS, ...changes };
    this.flow = new ReceiveFlow(writer, settings, new StreamTable("server"), new Acknowledgements());
    t.after(() => this.flow.close());
  }

  /** `id` of a stream, 0 for the connection. */
  room(id: number): number {
    return this.#room.get(id) ?? 0;
  }

  open(): NotingStream {
    const stream = new NotingStream();
    stream.id = this.#nextId;
    this.#nextId += 2;
    const { streamWindow } = this.flow;
    stream.receiveWindow = streamWindow;
    stream.windowSize = streamWindow;
    this.#room.set(stream.id, streamWindow);
    return stream;
  }

  /** This many bytes arrive. */
  arrive({ id }: NotingStream, bytes: number): void {
    for (const each of [0, id]) {
      this.#room.set(each, this.room(each) - bytes);
      assert.ok(this.room(each) >= 0, `the window of ${each} does not allow ${bytes} bytes`);
    }
    assert.ok(this.flow.receive(bytes));
  }

  take(stream: NotingStream, bytes: number): void {
    this.flow.credit(bytes);
    this.flow.creditStream(stream, bytes);
  }

  /** This many bytes arrive in small pieces, and are taken at once. */
  pass(stream: NotingStream, bytes: number): void {
    for (let left = bytes; left > 0; left -= 8 * KIB) {
      this.arrive(stream, 8 * KIB);
      this.take(stream, 8 * KIB);
    }
  }
}

/** From now on, the clock advances by this much with each reading. */
function clock(t: TestContext, stepMs: number): void {
  let now = 1000;
  t.mock.method(performance, "now", () => {
    now += stepMs;
    return now;
  });
}

test("the window of a stream that is taken fast grows to the largest, and that of the connection with it", (t) => {
  clock(t, 1);
  const connection = new Connection(t);
  const stream = connection.open();
  connection.pass(stream, 16 * 1024 * KIB);
  assert.ok(connection.room(stream.id) > LARGEST_WINDOW / 2 && connection.room(stream.id) <= LARGEST_WINDOW);
  const other = connection.open();
  // It stands still, and the other stream has as much of the connection as it would have without it.
  connection.arrive(stream, connection.room(stream.id));
  assert.ok(connection.room(0) >= CONNECTION_WINDOW / 2 - STREAM_WINDOW, `${connection.room(0)} bytes`);
  connection.pass(other, 1024 * KIB);
});

test("the window of a stream that is taken slowly stays as it is", (t) => {
  clock(t, 60);
  const connection = new Connection(t);
  const stream = connection.open();
  connection.pass(stream, 1024 * KIB);
  assert.ok(connection.room(stream.id) <= STREAM_WINDOW);
  assert.ok(connection.room(0) <= CONNECTION_WINDOW);
});

test("a window whose size is fixed does not grow", (t) => {
  clock(t, 1);
  const connection = new Connection(t, { largestWindow: STREAM_WINDOW });
  const stream = connection.open();
  connection.pass(stream, 1024 * KIB);
  assert.ok(connection.room(stream.id) <= STREAM_WINDOW);
});

test("the connection gives back what a stream's window has grown by once the stream is over, and no more", (t) => {
  clock(t, 1);
  const connection = new Connection(t);
  const stream = connection.open();
  connection.pass(stream, 16 * 1024 * KIB);
  connection.flow.forget(stream);
  clock(t, 60);
  const next = connection.open();
  connection.pass(next, 8 * 1024 * KIB);
  const room = connection.room(0);
  assert.ok(room > CONNECTION_WINDOW / 2 && room <= CONNECTION_WINDOW, `${room} bytes`);
  // Bytes that were taken after its end, like those of a stream that is reset.
  connection.pass(next, CONNECTION_WINDOW / 2);
  assert.ok(connection.room(0) > CONNECTION_WINDOW / 2);
});

test("a connection whose windows have become smaller gives back what streams grow by later", (t) => {
  clock(t, 1);
  t.after(() => setMemoryShort(false));
  const connection = new Connection(t, { frugalWindow: 32 * KIB });
  setMemoryShort(true);
  connection.pass(connection.open(), 8 * KIB);
  setMemoryShort(false);
  for (let i = 0; i < 10; i++) {
    const small = connection.open();
    assert.equal(connection.room(small.id), 32 * KIB);
    connection.flow.forget(small);
  }
  const stream = connection.open();
  connection.pass(stream, 16 * 1024 * KIB);
  assert.ok(connection.room(0) > CONNECTION_WINDOW);
  connection.flow.forget(stream);
  clock(t, 60);
  connection.pass(connection.open(), 8 * 1024 * KIB);
  assert.ok(connection.room(0) <= CONNECTION_WINDOW, `${connection.room(0)} bytes`);
});

/** Opens connections, each with a stream that is taken fast, until one cannot grow to its limit; returns their growth. */
function growAll(t: TestContext, connections: Connection[]): number {
  let grown = 0;
  for (
    let growth = Number.POSITIVE_INFINITY;
    growth > LARGEST_WINDOW / 2 && connections.length < 100;
    grown += growth
  ) {
    const connection = new Connection(t);
    connections.push(connection);
    const stream = connection.open();
    connection.pass(stream, 16 * 1024 * KIB);
    growth = stream.windowSize - STREAM_WINDOW;
  }
  return grown;
}

test("all windows of a thread grow by 32 MiB together, not counting those of connections that have ended", (t) => {
  clock(t, 1);
  const connections: Connection[] = [];
  const grown = growAll(t, connections);
  assert.ok(grown > 28 * 1024 * KIB && grown <= 32 * 1024 * KIB, `${grown} bytes`);
  for (const { flow } of connections.splice(0)) flow.close();
  assert.equal(growAll(t, connections), grown);
});

test("a thread that is frugal lets no window grow, and is so while streams hold more than 32 MiB", (t) => {
  clock(t, 1);
  t.after(() => setMemoryShort(false));
  setMemoryShort(true);
  const first = new Connection(t);
  const stream = first.open();
  first.pass(stream, 1024 * KIB);
  assert.ok(first.room(stream.id) <= STREAM_WINDOW);
  setMemoryShort(false);
  const connections: Connection[] = [];
  for (let held = 0; held <= 32 * 1024 * KIB; held += STREAM_WINDOW) {
    assert.ok(!frugal, `with ${held} bytes`);
    const connection = new Connection(t);
    connections.push(connection);
    connection.arrive(connection.open(), STREAM_WINDOW);
  }
  assert.ok(frugal);
  connections.pop()?.flow.close();
  assert.ok(!frugal);
});

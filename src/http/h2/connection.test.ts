import assert from "node:assert/strict";
import { connect as http2Connect } from "node:http2";
import { connect as netConnect, type Socket } from "node:net";
import { test } from "node:test";
import { setMemoryShort } from "../../net/frugality.ts";
import { collectGarbage } from "../../net/node-internals.ts";
import {
  CANCEL,
  ENHANCE_YOUR_CALM,
  FLOW_CONTROL_ERROR,
  INTERNAL_ERROR,
  NO_ERROR,
  PREFACE,
  PROTOCOL_ERROR,
  REFUSED_STREAM,
  STREAM_CLOSED,
  writeFrameHeader,
} from "./frames.ts";
import { connectPair, type NotingStream, type Side, TestServer, until } from "./testing/pair.ts";

const OK = [":status", "200"];

/** Responds to each request once it is complete, with the length of its body. */
function answerAll(stream: NotingStream): void {
  stream.act = (event) => {
    if (event !== "end") return;
    stream.sendHeaders(OK, ["x-bytes", String(stream.bytes)], false);
    const body = Buffer.from("hello");
    stream.sendData(body, 0, body.length);
    stream.sendEnd([]);
  };
}

test("a request and its response, without and with bodies and trailers", async () => {
  using pair = await connectPair((side) => {
    side.accept = answerAll;
  });
  const { client, server } = pair;
  const get = client.request();
  const post = client.request("POST", ["content-type", "text/plain"]);
  post.sendData(Buffer.from("one"), 0, 3);
  post.sendData(Buffer.from("two"), 0, 3);
  post.sendEnd(["x-sum", "6"]);
  await until(() => get.events.includes("end") && post.events.includes("end"), "the responses");
  assert.deepEqual(get.sections, [[":status", "200", "x-bytes", "0"]]);
  assert.equal(get.text, "hello");
  assert.deepEqual(post.sections, [[":status", "200", "x-bytes", "6"]]);
  const received = server.streams[1];
  assert.deepEqual(received?.sections.at(-1), ["x-sum", "6"]);
  assert.equal(received?.text, "onetwo");
  assert.deepEqual(
    received?.events.filter((event) => event !== "batch"),
    ["headers", "data", "data", "headers, end", "end"],
  );
  assert.equal(server.connection.streamCount, 0);
  assert.equal(client.connection.streamCount, 0);
  assert.deepEqual([server.gone.length, client.gone.length], [2, 2]);
});

test("responses of one turn leave in one write, END_STREAM with the last data", async () => {
  using pair = await connectPair((side) => {
    side.accept = answerAll;
  });
  const streams = Array.from({ length: 10 }, () => pair.client.request());
  await until(() => streams.every((stream) => stream.events.includes("end")), "the responses");
  // Apart from SETTINGS, ACKs and the first read: ten responses arrived in very few reads.
  assert.ok(pair.client.connection.heard <= 4, `${pair.client.connection.heard} reads`);
  assert.ok(streams.every((stream) => stream.events.join() === "headers,data,end"));
});

test("large bodies both ways arrive whole, and every window is full again", async () => {
  const size = 3_000_000;
  using pair = await connectPair((side) => {
    side.accept = (stream) => {
      stream.act = (event) => {
        if (event === "headers") stream.sendHeaders(OK, [], false);
        if (event === "end") send(stream, size);
        if (event === "writable") resumeSending(stream);
      };
    };
  });
  const { client, server } = pair;
  const stream = client.request("POST");
  stream.act = (event) => event === "writable" && resumeSending(stream);
  send(stream, size);
  await until(() => stream.events.includes("end"), "the response");
  assert.equal(server.streams[0]?.bytes, size);
  assert.equal(stream.bytes, size);
  assert.equal(stream.uncredited, 0);
});

const left = new WeakMap<NotingStream, number>();

/** Sends `size` bytes, as fast as the stream takes them. */
function send(stream: NotingStream, size: number): void {
  left.set(stream, size);
  resumeSending(stream);
}

function resumeSending(stream: NotingStream): void {
  const piece = Buffer.alloc(20_000, 120);
  for (;;) {
    const rest = left.get(stream) ?? 0;
    const length = Math.min(rest, piece.length);
    left.set(stream, rest - length);
    const more = stream.sendData(piece, 0, length);
    if (rest === length) {
      left.delete(stream);
      stream.sendEnd([]);
      return;
    }
    if (!more) return;
  }
}

test("a paused reader gets nothing and slows down its peer by the stream's window; other streams continue", async () => {
  using pair = await connectPair((side) => {
    side.accept = (stream) => {
      stream.act = (event) => {
        if (event === "headers" && side.streams.length === 1) stream.pause();
        if (event === "end") answerAll(stream);
        if (event === "end") stream.act("end", stream);
      };
    };
  });
  const { client, server } = pair;
  const slow = client.request("POST");
  send(slow, 200_000);
  slow.act = (event) => event === "writable" && resumeSending(slow);
  const other = client.request("POST");
  send(other, 10_000);
  await until(() => other.events.includes("end"), "the other stream");
  const held = server.streams[0];
  assert.equal(held?.bytes, 0);
  await until(() => held?.uncredited === 64 * 1024, "a full window");
  assert.equal(left.get(slow) !== undefined, true, "the sender has to wait");
  held?.resume();
  await until(() => slow.events.includes("end"), "the slow stream");
  assert.equal(held?.bytes, 200_000);
});

test("windows become smaller when the thread becomes frugal, without a stream that stops", async (t) => {
  const data = Buffer.alloc(100_000, 120);
  using pair = await connectPair(
    (side) => {
      side.accept = (stream) => {
        stream.act = (event) => event === "headers" && stream.sendHeaders(OK, [], false);
      };
    },
    { client: { streamWindow: 200_000, largestWindow: 200_000, frugalWindow: 16_384, connectionWindow: 1_000_000 } },
  );
  const { client, server } = pair;
  const [open, paused] = [client.request("POST"), client.request("POST")];
  paused.pause();
  await until(() => server.streams.length === 2, "the requests");
  const [toOpen, toPaused] = server.streams;
  // So far no credit was returned: it is less than half of the window.
  toOpen?.sendData(data, 0, 90_000);
  await until(() => open.bytes === 90_000, "the first bytes");
  t.after(() => setMemoryShort(false));
  setMemoryShort(true);
  toPaused?.sendData(data, 0, 10_000);
  await until(() => toPaused?.sendWindow === 16_384 - 10_000, "the smaller window");
  toPaused?.sendData(data, 0, 50_000);
  toOpen?.sendData(data, 0, 90_000);
  toOpen?.sendEnd([]);
  await until(() => open.events.includes("end"), "the rest of the open stream");
  assert.deepEqual([open.bytes, paused.uncredited], [180_000, 16_384]);
  const later = client.request("POST");
  await until(() => server.streams[2]?.sendWindow === 16_384, "a stream with the smaller window");
  paused.resume();
  await until(() => paused.bytes === 60_000, "the rest of the paused stream");
  await until(() => toPaused?.sendWindow === paused.receiveWindow, "both sides to agree on the window");
  assert.deepEqual([client.error, later.resetCode], [undefined, undefined]);
});

test("a window below the default counts in full from the first stream that a client opens", async () => {
  using pair = await connectPair(
    (side) => {
      side.accept = (stream) => {
        stream.act = (event) => {
          if (event === "headers, end") stream.sendHeaders(OK, [], false);
          if (event === "headers, end") send(stream, 100_000);
          if (event === "writable") resumeSending(stream);
        };
      };
    },
    { client: { streamWindow: 32_768, largestWindow: 32_768, frugalWindow: 32_768 } },
  );
  // Sent after SETTINGS, which the server acknowledges before it responds.
  const stream = pair.client.request();
  await until(() => stream.events.includes("end") || stream.over, "the response");
  assert.deepEqual([stream.bytes, stream.resetCode], [100_000, undefined]);
});

test("a stream that is reset with unread data gives the connection its window back", async () => {
  using pair = await connectPair((side) => {
    side.accept = (stream) => {
      stream.act = (event) => event === "headers" && stream.pause();
    };
  });
  const { client, server } = pair;
  // Ten times what the connection's window allows.
  for (let i = 0; i < 40; i++) {
    const stream = client.request("POST");
    send(stream, 64 * 1024);
    await until(() => server.streams[i]?.uncredited === 64 * 1024, `upload ${i}`);
    server.streams[i]?.reset(CANCEL);
    await until(() => stream.resetCode === CANCEL, "the reset");
  }
  assert.equal(server.connection.streamCount, 0);
});

test("nothing is kept of streams that are reset while their data waits for the connection's window", async () => {
  const waiting: WeakRef<NotingStream>[] = [];
  const body = Buffer.alloc(100_000);
  using pair = await connectPair(
    (side) => {
      side.accept = (stream) => {
        stream.act = (event) => {
          if (event !== "headers, end") return;
          stream.sendHeaders(OK, [], false);
          stream.sendData(body, 0, body.length);
        };
      };
    },
    { client: { connectionWindow: 65_535, streamWindow: 70_000, largestWindow: 70_000 } },
  );
  const { client, server } = pair;
  const first = client.request();
  first.pause();
  await until(() => server.streams.length === 1, "the stream that uses up the window");
  for (let i = 0; i < 20; i++) {
    const other = client.request();
    await until(() => other.sections.length > 0, "the head of a response");
    other.reset(CANCEL);
    await until(() => server.gone.length > i, "the reset");
    waiting.push(...server.gone.map((stream) => new WeakRef(stream as NotingStream)).slice(-1));
  }
  server.streams.length = 1;
  server.gone.length = 0;
  await new Promise(setImmediate);
  collectGarbage();
  const kept = waiting.filter((stream) => stream.deref() !== undefined);
  assert.ok(kept.length <= 1, `${kept.length} streams are kept`);
});

test("credit for data of a stream that was reset meanwhile is returned too", async () => {
  using pair = await connectPair((side) => {
    side.accept = (stream) => {
      stream.act = (event) => event === "headers" && stream.reset(NO_ERROR);
    };
  });
  const { client } = pair;
  for (let i = 0; i < 20; i++) {
    const stream = client.request("POST");
    send(stream, 60_000);
    await until(() => stream.resetCode === NO_ERROR, "the reset");
  }
  const last = client.request("POST");
  send(last, 60_000);
  await until(() => last.resetCode === NO_ERROR, "the last reset");
  assert.equal(pair.server.error, undefined);
});

test("a reader may end its own stream while it is given data", async () => {
  using pair = await connectPair((side) => {
    side.accept = (stream) => {
      stream.act = (event) => {
        if (event === "headers") stream.sendHeaders(OK, [], false);
        if (event === "headers") send(stream, 50_000);
      };
    };
  });
  const { client } = pair;
  const stream = client.request("POST");
  stream.act = (event) => event === "data" && stream.reset(CANCEL);
  await until(() => pair.server.streams[0]?.resetCode === CANCEL, "the reset");
  assert.deepEqual(stream.events, ["headers", "data"]);
  assert.equal(stream.uncredited, 0);
  assert.equal(client.error, undefined);
});

test("trailers behind held data wait for it", async () => {
  using pair = await connectPair((side) => {
    side.accept = (stream) => {
      stream.act = (event) => event === "headers" && stream.pause();
    };
  });
  const stream = pair.client.request("POST");
  stream.sendData(Buffer.from("body"), 0, 4);
  await until(() => pair.server.streams[0]?.holds === true, "the data");
  stream.sendEnd(["x-end", "1"]);
  const received = pair.server.streams[0];
  await until(() => received?.peerEnded === true, "the trailers");
  assert.deepEqual(received?.events, ["headers"]);
  if (received !== undefined) received.act = () => {};
  received?.resume();
  assert.deepEqual(received?.events, ["headers", "data", "headers, end", "end"]);
  assert.deepEqual(received?.sections.at(-1), ["x-end", "1"]);
});

test("fields that fill several frames arrive", async () => {
  using pair = await connectPair((side) => {
    side.accept = answerAll;
  });
  const fields = Array.from({ length: 40 }, (_, i) => [`x-${i}`, "v".repeat(1000)]).flat();
  const stream = pair.client.request("GET", fields);
  await until(() => stream.events.includes("end"), "the response");
  assert.deepEqual(pair.server.streams[0]?.sections[0]?.slice(8), fields);
});

test("a complete response outlives its connection, an incomplete one does not", async () => {
  using pair = await connectPair((side) => {
    side.accept = (stream) => {
      stream.act = (event) => {
        if (event !== "headers, end") return;
        stream.sendHeaders(OK, [], false);
        stream.sendData(Buffer.from("text"), 0, 4);
        if (side.streams.length === 1) stream.sendEnd([]);
      };
    };
  });
  const { client, server } = pair;
  const pausing = (stream: NotingStream) => (event: string) => event === "headers" && stream.pause();
  const complete = client.request();
  complete.act = pausing(complete);
  const cut = client.request();
  cut.act = pausing(cut);
  await until(() => complete.peerEnded && cut.holds, "the responses");
  server.connection.destroy("");
  await until(() => client.closed, "the end of the connection");
  assert.equal(complete.resetCode, undefined);
  assert.equal(cut.resetCode, CANCEL);
  complete.resume();
  assert.deepEqual([complete.text, complete.events.at(-1)], ["text", "end"]);
});

test("an exception of a stream ends that stream only", async () => {
  using pair = await connectPair((side) => {
    side.accept = (stream) => {
      answerAll(stream);
      if (side.streams.length > 1) return;
      stream.act = () => {
        throw new Error("a mistake");
      };
    };
  });
  const { client, server } = pair;
  const bad = client.request();
  const good = client.request();
  await until(() => good.events.includes("end") && bad.resetCode !== undefined, "both ends");
  assert.equal(bad.resetCode, INTERNAL_ERROR);
  assert.match(String(server.streams[0]?.fault), /a mistake/);
  assert.equal(server.closed, false);
});

test("GOAWAY in two steps: streams between them are served, later ones are refused, for another connection", async () => {
  using pair = await connectPair((side) => {
    side.accept = answerAll;
  });
  const { client, server } = pair;
  server.connection.goAway(false);
  await until(() => client.goAway !== undefined, "the first GOAWAY");
  assert.equal(client.goAway?.lastStream, 2 ** 31 - 1);
  const between = client.request();
  await until(() => between.events.includes("end"), "the response");
  server.connection.goAway(true);
  const late = client.request();
  await until(() => late.resetCode !== undefined, "the refusal");
  assert.deepEqual([client.goAway?.lastStream, late.resetCode, late.refused], [1, REFUSED_STREAM, true]);
  server.connection.end();
  await until(() => client.closed && server.closed, "the end");
  assert.equal(server.error, undefined);
});

test("more streams than were announced are refused, and the others live on", async () => {
  using pair = await connectPair(() => {}, { server: { maxStreams: 2 } });
  const { client, server } = pair;
  const streams = [client.request("POST"), client.request("POST"), client.request("POST")];
  await until(() => streams[2]?.resetCode !== undefined, "the refusal");
  assert.deepEqual(
    [streams[2]?.resetCode, streams[2]?.refused, server.connection.streamCount],
    [REFUSED_STREAM, true, 2],
  );
});

test("PING is acknowledged; one that is not ends the connection", async () => {
  using pair = await connectPair();
  const { client } = pair;
  let acks = 0;
  client.connection.ping(() => acks++);
  await until(() => acks === 1, "the answer");
  client.connection.sweep(performance.now() + 60_000);
  assert.equal(client.closed, false);
  client.connection.ping(() => acks++);
  client.connection.sweep(performance.now() + 60_000);
  await until(() => client.closed, "the end");
});

test("a client of node:http2 gets its responses", async () => {
  using server = await TestServer.start((side) => {
    side.accept = answerAll;
  });
  const session = http2Connect(`http://127.0.0.1:${server.port}`);
  const answers = Array.from({ length: 20 }, async () => {
    const stream = session.request({ ":method": "POST", ":path": "/" });
    stream.end(Buffer.alloc(100_000));
    let text = "";
    for await (const piece of stream) text += String(piece);
    return text;
  });
  assert.deepEqual(await Promise.all(answers), Array(20).fill("hello"));
  session.close();
});

// ── what peers do wrong ──

/** A client that sends frames as the test wants them, and collects those of the server. */
class RawClient implements Disposable {
  readonly #socket: Socket;
  #received = Buffer.alloc(0);
  closed = false;

  constructor(port: number) {
    this.#socket = netConnect(port, "127.0.0.1");
    this.#socket.on("data", (bytes) => {
      this.#received = Buffer.concat([this.#received, bytes]);
    });
    this.#socket.on("close", () => {
      this.closed = true;
    });
    this.#socket.on("error", () => {});
    this.#socket.write(PREFACE);
    this.frame(4, 0, 0, []);
  }

  frame(type: number, flags: number, id: number, payload: readonly number[]): void {
    const bytes = Buffer.alloc(9 + payload.length);
    const at = writeFrameHeader(bytes, 0, payload.length, type, flags, id);
    bytes.set(payload, at);
    this.#socket.write(bytes);
  }

  /** HEADERS of a GET. */
  open(id: number, flags: number): void {
    this.frame(1, flags, id, [0x82, 0x86, 0x84]);
  }

  /** Frames of a type: stream and the 32 bits at `offset`. */
  frames(type: number, offset: number): { readonly id: number; readonly value: number }[] {
    const found = [];
    for (let at = 0; at + 9 <= this.#received.length; ) {
      const length = this.#received.readUIntBE(at, 3);
      const whole = at + 9 + length <= this.#received.length && length >= offset + 4;
      if (this.#received[at + 3] === type && whole)
        found.push({ id: this.#received.readUInt32BE(at + 5), value: this.#received.readUInt32BE(at + 9 + offset) });
      at += 9 + length;
    }
    return found;
  }

  get resets() {
    return this.frames(3, 0);
  }

  get goAways(): number[] {
    return this.frames(7, 4).map(({ value }) => value);
  }

  [Symbol.dispose](): void {
    this.#socket.destroy();
  }
}

const GET = 0x5;
const POST = 0x4;

/** Name, what the client sends, and the code of the GOAWAY. */
const CONNECTION_ERRORS: readonly (readonly [string, (client: RawClient) => void, number])[] = [
  ["DATA on stream 0", (c) => c.frame(0, 0, 0, [1]), PROTOCOL_ERROR],
  ["DATA on an idle stream", (c) => c.frame(0, 0, 1, [1]), PROTOCOL_ERROR],
  ["an even stream", (c) => c.open(2, GET), PROTOCOL_ERROR],
  [
    "a stream below the last",
    (c) => {
      c.open(5, GET);
      c.open(3, GET);
    },
    STREAM_CLOSED,
  ],
  ["HEADERS that refer to nothing", (c) => c.frame(1, GET, 1, [0xff, 0x7f]), 9],
  [
    "a frame in a field block",
    (c) =>
      both(
        () => c.open(1, 1),
        () => c.frame(6, 0, 0, Array(8).fill(0)),
      ),
    PROTOCOL_ERROR,
  ],
  ["PING of 4 bytes", (c) => c.frame(6, 0, 0, [0, 0, 0, 0]), 6],
  ["WINDOW_UPDATE of 0", (c) => c.frame(8, 0, 0, [0, 0, 0, 0]), PROTOCOL_ERROR],
  ["a window that overflows", (c) => c.frame(8, 0, 0, [0x7f, 0xff, 0xff, 0xff]), FLOW_CONTROL_ERROR],
  ["ENABLE_PUSH of 2", (c) => c.frame(4, 0, 0, [0, 2, 0, 0, 0, 2]), PROTOCOL_ERROR],
  ["an initial window that is too large", (c) => c.frame(4, 0, 0, [0, 4, 0x80, 0, 0, 0]), FLOW_CONTROL_ERROR],
  // RST_STREAM must not be sent for an idle stream (RFC 9113 6.4).
  ["PRIORITY of 4 bytes on an idle stream", (c) => c.frame(2, 0, 1, [0, 0, 0, 3]), 6],
  ["an idle stream that depends on itself", (c) => c.frame(2, 0, 1, [0, 0, 0, 1, 0]), PROTOCOL_ERROR],
  ["PUSH_PROMISE", (c) => c.frame(5, 4, 1, [0, 0, 0, 2]), PROTOCOL_ERROR],
  [
    "padding longer than its frame",
    (c) =>
      both(
        () => c.open(1, POST),
        () => c.frame(0, 8, 1, [5, 0, 0]),
      ),
    PROTOCOL_ERROR,
  ],
  ["CONTINUATION outside of a block", (c) => c.frame(9, 4, 1, []), PROTOCOL_ERROR],
  [
    "CONTINUATION without end",
    (c) =>
      flood(
        100,
        () => c.frame(9, 0, 1, []),
        () => c.open(1, 0),
      ),
    ENHANCE_YOUR_CALM,
  ],
  ["SETTINGS without end", (c) => flood(1000, () => c.frame(4, 0, 0, [])), ENHANCE_YOUR_CALM],
  ["PING without end", (c) => flood(3000, () => c.frame(6, 0, 0, Array(8).fill(0))), ENHANCE_YOUR_CALM],
  ["ACKs of PINGs that were not sent", (c) => flood(3000, () => c.frame(6, 1, 0, Array(8).fill(0))), ENHANCE_YOUR_CALM],
  ["ACKs of SETTINGS without end", (c) => flood(3000, () => c.frame(4, 1, 0, [])), ENHANCE_YOUR_CALM],
  [
    "RST_STREAM without end, of a stream that has ended",
    (c) => {
      c.open(1, POST);
      flood(3000, () => c.frame(3, 0, 1, [0, 0, 0, 0]));
    },
    ENHANCE_YOUR_CALM,
  ],
  [
    "empty DATA without end",
    (c) =>
      flood(
        3000,
        () => c.frame(0, 0, 1, []),
        () => c.open(1, POST),
      ),
    ENHANCE_YOUR_CALM,
  ],
  ["PRIORITY without end", (c) => flood(3000, () => c.frame(2, 0, 1, [0, 0, 0, 3, 0])), ENHANCE_YOUR_CALM],
  [
    "WINDOW_UPDATE without end",
    (c) =>
      flood(
        5000,
        () => c.frame(8, 0, 1, [0, 0, 0, 1]),
        () => c.open(1, POST),
      ),
    ENHANCE_YOUR_CALM,
  ],
  [
    "resets without end",
    (c) => {
      for (let i = 0; i < 1500; i++) {
        c.open(2 * i + 1, POST);
        c.frame(3, 0, 2 * i + 1, [0, 0, 0, 8]);
      }
    },
    ENHANCE_YOUR_CALM,
  ],
  [
    "resets that the client provokes",
    (c) => {
      for (let i = 0; i < 1500; i++) {
        c.open(2 * i + 1, POST);
        c.frame(8, 0, 2 * i + 1, [0, 0, 0, 0]);
      }
    },
    ENHANCE_YOUR_CALM,
  ],
];

function both(first: () => void, second: () => void): void {
  first();
  second();
}

function flood(count: number, frame: () => void, first?: () => void): void {
  first?.();
  for (let i = 0; i < count; i++) frame();
}

for (const [name, act, code] of CONNECTION_ERRORS)
  test(`ends the connection: ${name}`, async () => {
    using server = await TestServer.start(() => {});
    using client = new RawClient(server.port);
    act(client);
    await until(() => client.goAways.length > 0 && client.closed, "GOAWAY and the close");
    assert.deepEqual(client.goAways, [code]);
    assert.equal(server.sides[0]?.error?.code, code);
    await until(() => server.sides[0]?.closed === true, "the close");
    assert.equal(server.sides[0]?.connection.streamCount, 0);
  });

test("until it has acknowledged SETTINGS, a client may fill the default window of a stream", async () => {
  const pauseAll = (side: Side): void => {
    side.accept = (stream) => stream.pause();
  };
  using server = await TestServer.start(pauseAll, { streamWindow: 1024 });
  using client = new RawClient(server.port);
  const kibibyte = new Array<number>(1024).fill(120);
  client.open(1, POST);
  for (let i = 0; i < 60; i++) client.frame(0, 0, 1, kibibyte);
  client.open(3, POST);
  client.frame(4, 1, 0, []);
  // Now its window is below 0, which lets an empty frame pass.
  client.frame(0, 1, 1, []);
  client.frame(0, 0, 3, [...kibibyte, 120]);
  client.open(5, POST);
  client.frame(0, 0, 5, [...kibibyte, 120]);
  await until(() => client.resets.length > 1, "RST_STREAM");
  const [first] = server.sides[0]?.streams ?? [];
  first?.resume();
  assert.deepEqual([first?.bytes, first?.events.at(-1), first?.resetCode], [60 * 1024, "end", undefined]);
  assert.deepEqual(
    client.resets,
    [3, 5].map((id) => ({ id, value: FLOW_CONTROL_ERROR })),
  );
});

/** Name, what the client sends on stream 1, and the code of RST_STREAM. */
const STREAM_ERRORS: readonly (readonly [string, (client: RawClient) => void, number])[] = [
  [
    "DATA after the end",
    (c) =>
      both(
        () => c.open(1, GET),
        () => c.frame(0, 0, 1, [1]),
      ),
    STREAM_CLOSED,
  ],
  [
    "HEADERS after the end",
    (c) =>
      both(
        () => c.open(1, GET),
        () => c.open(1, GET),
      ),
    STREAM_CLOSED,
  ],
  [
    "WINDOW_UPDATE of 0",
    (c) =>
      both(
        () => c.open(1, POST),
        () => c.frame(8, 0, 1, [0, 0, 0, 0]),
      ),
    PROTOCOL_ERROR,
  ],
  [
    "a window that overflows",
    (c) =>
      both(
        () => c.open(1, POST),
        () => c.frame(8, 0, 1, [0x7f, 0xff, 0xff, 0xff]),
      ),
    FLOW_CONTROL_ERROR,
  ],
  [
    "PRIORITY of 4 bytes",
    (c) =>
      both(
        () => c.open(1, POST),
        () => c.frame(2, 0, 1, [0, 0, 0, 3]),
      ),
    6,
  ],
  [
    "more data than the window allows",
    (c) => {
      c.open(1, POST);
      for (let i = 0; i < 5; i++) c.frame(0, 0, 1, Array(16_384).fill(0));
    },
    FLOW_CONTROL_ERROR,
  ],
];

for (const [name, act, code] of STREAM_ERRORS)
  test(`ends the stream, and only that: ${name}`, async () => {
    using server = await TestServer.start((side) => {
      side.accept = (stream) => {
        if (side.streams.length === 1) stream.pause();
        else answerAll(stream);
      };
    });
    using client = new RawClient(server.port);
    act(client);
    await until(() => client.resets.length > 0, "the reset");
    assert.deepEqual(client.resets, [{ id: 1, value: code }]);
    client.open(3, GET);
    await until(() => server.sides[0]?.streams[1]?.events.includes("end") === true, "another request");
    assert.deepEqual(client.goAways, []);
  });

test("a table of HPACK that one SETTINGS frame empties and enlarges again is empty", async () => {
  using server = await TestServer.start((side) => {
    side.accept = answerAll;
  });
  using client = new RawClient(server.port);
  // The peer has dropped its entries, so the next block has to announce that (RFC 7541 4.2): updates to 0 and to 4096.
  client.frame(4, 0, 0, [0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0x10, 0]);
  client.open(1, GET);
  await until(() => client.frames(1, 0).length > 0, "the response");
  assert.equal(client.frames(1, 0)[0]?.value, 0x20_3f_e1_1f);
});

test("a client of HTTP/1.1, or one without a preface, gets a GOAWAY", async () => {
  using server = await TestServer.start(() => {});
  const socket = netConnect(server.port, "127.0.0.1");
  socket.on("error", () => {});
  socket.resume();
  socket.write("GET / HTTP/1.1\r\n\r\n");
  await until(() => server.sides[0]?.closed === true, "the close");
  assert.equal(server.sides[0]?.error?.code, PROTOCOL_ERROR);
  socket.destroy();
});

test("a stream whose role responds inside onHeaders gets the end of the request", async () => {
  using pair = await connectPair((side) => {
    side.accept = (stream) => {
      stream.act = (event) => event === "headers, end" && stream.sendHeaders(OK, [], true);
    };
  });
  const stream = pair.client.request();
  await until(() => stream.events.includes("end"), "the response");
  assert.deepEqual(pair.server.streams[0]?.events, ["headers, end", "end"]);
});

test("frames on their way for a refused stream do no harm", async () => {
  using pair = await connectPair(undefined, { server: { maxStreams: 1 } });
  const { client, server } = pair;
  const first = client.request("POST");
  const refused = client.request("POST");
  refused.sendData(Buffer.alloc(1000), 0, 1000);
  refused.sendEnd(["x-sum", "1"]);
  await until(() => refused.resetCode === REFUSED_STREAM, "the refusal");
  assert.equal(refused.refused, true);
  first.sendEnd([]);
  await until(() => server.streams[0]?.events.includes("end") === true, "the other request");
  assert.equal(server.error, undefined);
});

test("a reader that pauses and resumes inside its events gets each of them once, in order", async () => {
  using pair = await connectPair((side) => {
    side.accept = (stream) => {
      stream.act = (event) => {
        stream.pause();
        if (event !== "headers") stream.resume();
      };
    };
  });
  const stream = pair.client.request("POST");
  for (let i = 0; i < 3; i++) stream.sendData(Buffer.alloc(20_000), 0, 20_000);
  stream.sendEnd(["x-sum", "1"]);
  const [received] = await accepted(pair.server.streams);
  await until(() => received.peerEnded, "the whole request");
  assert.deepEqual(received.events, ["headers"]);
  received.resume();
  const events = received.events.filter((event, i) => event !== received.events[i - 1]);
  assert.deepEqual(events, ["headers", "data", "headers, end", "end"]);
  assert.equal(received.bytes, 60_000);
});

test("a reader that pauses in its trailers gets the end when it resumes", async () => {
  using pair = await connectPair((side) => {
    side.accept = (stream) => {
      stream.act = (event) => event !== "data" && stream.pause();
    };
  });
  const stream = pair.client.request("POST");
  stream.sendData(Buffer.alloc(10), 0, 10);
  stream.sendEnd(["x-sum", "1"]);
  const [received] = await accepted(pair.server.streams);
  await until(() => received.peerEnded, "the whole request");
  received.resume();
  assert.equal(received.events.at(-1), "headers, end");
  received.resume();
  assert.equal(received.events.at(-1), "end");
});

/** The streams of a server once there is one. */
async function accepted(streams: readonly NotingStream[]): Promise<readonly [NotingStream]> {
  await until(() => streams.length > 0, "a stream");
  return [streams[0] as NotingStream];
}

test("trailers that do not end the stream are not held, because no window limits them", async () => {
  using pair = await connectPair((side) => {
    side.accept = (stream) => stream.pause();
  });
  const stream = pair.client.request("POST");
  stream.sendData(Buffer.alloc(10), 0, 10);
  stream.sendHeaders([], ["x-sum", "1"], false);
  await until(() => stream.resetCode === PROTOCOL_ERROR, "the reset");
  assert.equal(pair.server.streams[0]?.resetCode, PROTOCOL_ERROR);
  assert.equal(pair.server.error, undefined);
});

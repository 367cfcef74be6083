import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { type RawPeer, RawUpstream, reply } from "../../../test/helpers/raw-peer.ts";
import type { ResponseHead } from "../../http/h1/parse-head.ts";
import type { HeaderList } from "../../http/message/message.ts";
import { TUNNEL, UNKNOWN_LENGTH } from "../../http/stream.ts";
import { connect } from "../../net/connect.ts";
import { READ_SIZE } from "../../net/read-buffer.ts";
import { admitted } from "../../net/testing/egress.ts";
import type { Transport } from "../../net/transport.ts";
import { UpstreamConnection } from "./connection.ts";
import type { UpstreamEvents } from "./upstream.ts";

const REQUEST = "GET / HTTP/1.1\r\nhost: a\r\n\r\n";

/** Records what an exchange and its connection report, in the order of the calls. */
class Notes implements UpstreamEvents {
  readonly lines: string[] = [];
  body = "";
  #wake = (): void => {};
  /** Runs in `onResponse`: throws what a defect would. */
  onHead: () => void = () => {};

  /** Waits until `line` has been recorded; every event wakes it. */
  async until(line: string): Promise<void> {
    while (!this.lines.includes(line)) {
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      this.#wake = resolve;
      const timer = setTimeout(() => reject(new Error(`no ${line} after ${this.lines.join()}`)), 10_000);
      await promise;
      clearTimeout(timer);
    }
  }

  add(line: string): void {
    this.lines.push(line);
    this.#wake();
  }

  onInformational({ status }: ResponseHead): void {
    this.add(`informational ${status}`);
  }
  onResponse({ status }: ResponseHead, length: number): void {
    this.onHead();
    const how = length === UNKNOWN_LENGTH ? "unknown" : length === TUNNEL ? "tunnel" : String(length);
    this.add(`response ${status} ${how}`);
  }
  onResponseBody(buffer: Buffer, from: number, to: number): void {
    this.body += buffer.toString("latin1", from, to);
    this.add(`body up to ${this.body.length}`);
  }
  onResponseBatch(): void {}
  onResponseEnd(trailers: HeaderList): void {
    this.add(`end${trailers.length > 0 ? ` ${trailers.join(" ")}` : ""}`);
  }
  onUpstreamFailure(message: string, answered: boolean): void {
    this.add(`failed ${answered ? "after" : "before"} the response began: ${message}`);
  }
  onUpstreamDrain(): void {}
  onUpstreamFault(error: unknown): void {
    this.add(`fault: ${String(error)}`);
  }
}

interface Pair extends AsyncDisposable {
  readonly connection: UpstreamConnection;
  readonly server: RawPeer;
  readonly notes: Notes;
  /** Events of the exchanges except the body: its pieces depend on how the system cuts what was sent. */
  readonly events: () => string[];
}

/** A connection to a server that the test controls. */
async function open(): Promise<Pair> {
  const upstream = await RawUpstream.listen();
  const notes = new Notes();
  const connected = Promise.withResolvers<UpstreamConnection>();
  const owner = { release: () => notes.add("released"), closed: () => notes.add("closed") };
  connect(admitted({ host: "127.0.0.1", port: upstream.port }), 0, {
    onConnect: (transport: Transport) => {
      const connection = new UpstreamConnection(transport, owner, {});
      connected.resolve(connection);
      return connection;
    },
    onClose: connected.reject,
  });
  const opened = await connected.promise;
  return {
    connection: opened,
    server: await upstream.connection(),
    notes,
    events: () => notes.lines.filter((line) => !line.startsWith("body")),
    [Symbol.asyncDispose]: async () => {
      opened.destroy();
      await upstream[Symbol.asyncDispose]();
    },
  };
}

/** Sends a request without a body and waits until the server has it. */
async function ask({ connection, server, notes }: Pair, method = "GET"): Promise<void> {
  connection.send(REQUEST.replace("GET", method), method, 0, false, notes);
  await server.take("\r\n\r\n");
}

test("after a cancelled request of which nothing was written, its connection is reused", async () => {
  await using pair = await open();
  const { connection, server, notes } = pair;
  const cancelled = new Notes();
  connection.send(REQUEST.replace("GET", "POST"), "POST", 5, false, cancelled);
  connection.sendBody(Buffer.from("he"), 0, 2);
  connection.destroy();
  assert.deepEqual([notes.lines, connection.usable, connection.served], [["released"], true, 1]);
  connection.send(REQUEST, "GET", 0, false, notes);
  assert.equal(await server.take("\r\n\r\n"), REQUEST);
  server.send(reply("hello"));
  await notes.until("end");
  connection.send(REQUEST.replace("GET", "POST"), "POST", 5, false, cancelled);
  connection.destroy();
  server.end();
  await notes.until("closed");
  assert.deepEqual(cancelled.lines, []);
});

test("after a cancelled request that was partly written, its connection is closed", async () => {
  await using pair = await open();
  const { connection, notes } = pair;
  connection.send(REQUEST.replace("GET", "POST"), "POST", 5, false, notes);
  connection.flush();
  connection.destroy();
  await notes.until("closed");
  assert.deepEqual([notes.lines, connection.usable], [["closed"], false]);
});

test("after a cancelled request with a large piece of its body, which cannot be withdrawn, its connection is closed", async () => {
  await using pair = await open();
  const { connection, notes } = pair;
  connection.send(REQUEST.replace("GET", "POST"), "POST", 20_000, false, notes);
  connection.sendBody(Buffer.alloc(10_000, "x"), 0, 10_000);
  connection.destroy();
  await notes.until("closed");
  assert.deepEqual([notes.lines, connection.usable], [["closed"], false]);
});

test("after a response to a request of which nothing was written, its connection is closed", async () => {
  await using pair = await open();
  const { connection, server, notes } = pair;
  connection.send(REQUEST.replace("GET", "POST"), "POST", 5, false, notes);
  // The rest of the response would be read as that of the next request.
  server.send("HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 4");
  await notes.until("informational 102");
  connection.destroy();
  await notes.until("closed");
  assert.equal(connection.usable, false);
});

test("bytes that come after a response and before the next request is written are not taken for its response", async () => {
  await using pair = await open();
  const { connection, server, notes } = pair;
  connection.send(REQUEST, "GET", 0, false, notes);
  await server.take("\r\n\r\n");
  server.send(reply(""));
  await notes.until("end");
  connection.send(REQUEST.replace("GET", "POST"), "POST", 5, false, notes);
  server.send(reply("stray"));
  await notes.until("closed");
  assert.deepEqual(notes.lines.slice(-2), [
    "failed before the response began: the upstream sent bytes before the request",
    "closed",
  ]);
});

test("a request was never sent if its connection ends before any of it is written", async () => {
  for (const written of [false, true]) {
    await using pair = await open();
    const { connection, server, notes } = pair;
    connection.send(REQUEST.replace("GET", "POST"), "POST", 4, false, notes);
    if (written) connection.flush();
    server.end();
    await notes.until("closed");
    assert.match(notes.lines[0] ?? "", /^failed before the response began/);
    assert.equal(connection.refused, !written);
  }
});

test("a tunnel through which nothing was sent counts as used", async () => {
  await using pair = await open();
  const { connection, server, notes } = pair;
  connection.openTunnel(notes);
  server.reset();
  await notes.until("closed");
  assert.match(notes.lines[0] ?? "", /^failed/);
  assert.equal(connection.refused, false);
});

test("the end of a request that comes just before the end of its response arrives, although the connection closes", async () => {
  await using pair = await open();
  const { connection, server, notes } = pair;
  connection.send(REQUEST.replace("GET", "POST"), "POST", 4, false, notes);
  connection.flush();
  await server.take("\r\n\r\n");
  notes.onHead = () => {
    connection.sendBody(Buffer.from("body"), 0, 4);
    connection.sendEnd([]);
  };
  server.send(reply("", ["Connection: close"]));
  assert.equal(await server.take("body"), "body");
  await notes.until("closed");
  assert.deepEqual(pair.events(), ["response 200 0", "end", "closed"]);
});

test("after a cancelled request whose body has filled a write, its connection is closed", async () => {
  await using pair = await open();
  const { connection, server, notes } = pair;
  const body = Buffer.alloc(READ_SIZE, "x");
  connection.send(REQUEST.replace("GET", "POST"), "POST", 2 * body.length, false, notes);
  connection.sendBody(body, 0, body.length);
  connection.flush();
  await server.take("\r\n\r\n");
  connection.destroy();
  await notes.until("closed");
  assert.deepEqual([notes.lines, connection.usable], [["closed"], false]);
});

/** What ends each body, and whether the connection serves another exchange afterwards. */
for (const { name, method, response, events, body } of [
  { name: "Content-Length", response: reply("hello"), events: ["response 200 5", "released", "end"], body: "hello" },
  { name: "no bytes", response: reply(""), events: ["response 200 0", "released", "end"], body: "" },
  {
    name: "chunks and a trailer",
    response: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nx-sum: 1\r\n\r\n",
    events: ["response 200 unknown", "released", "end x-sum 1"],
    body: "hello",
  },
  {
    name: "HEAD, whatever the length says",
    method: "HEAD",
    response: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
    events: ["response 200 0", "released", "end"],
    body: "",
  },
  {
    name: "304 with a length",
    response: "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n",
    events: ["response 304 0", "released", "end"],
    body: "",
  },
  {
    name: "204 that announces a body, which may follow",
    response: "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n",
    events: ["response 204 0", "end", "closed"],
    body: "",
  },
  {
    name: "Connection: close",
    response: reply("hello", ["Connection: close"]),
    events: ["response 200 5", "end", "closed"],
    body: "hello",
  },
  {
    name: "bytes behind the response, which would become the next one",
    response: `${reply("hello")}HTTP/1.1 200 OK\r\n`,
    events: ["response 200 5", "end", "closed"],
    body: "hello",
  },
])
  test(`the end of a response: ${name}`, async () => {
    await using pair = await open();
    await ask(pair, method);
    pair.server.send(response);
    await pair.notes.until(events.at(-1) ?? "");
    assert.deepEqual(pair.events(), events, "released before the end is reported, so that the next request can use it");
    assert.equal(pair.notes.body, body);
    assert.equal(pair.connection.usable, events.includes("released"));
    assert.equal(pair.connection.served, events.includes("released") ? 1 : 0);
  });

test("a head and its framing may arrive byte by byte", async () => {
  await using pair = await open();
  await ask(pair);
  const text = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
  for (const byte of Buffer.from(text)) pair.connection.onData(Buffer.from([byte]), 1);
  assert.deepEqual(pair.events(), ["response 200 unknown", "released", "end"]);
  assert.equal(pair.notes.body, "hello");
});

test("a released connection is read again, whatever paused it, and carries the next exchange", async () => {
  await using pair = await open();
  await ask(pair);
  pair.notes.onHead = () => pair.connection.pause();
  pair.server.send(reply(""));
  await pair.notes.until("end");
  pair.notes.onHead = () => {};
  await ask(pair);
  pair.server.send(reply("again"));
  await pair.notes.until("body up to 5");
  assert.equal(pair.connection.served, 2);
});

test("a response that is complete before its request closes the connection", async () => {
  await using pair = await open();
  const { connection, server, notes } = pair;
  connection.send("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n\r\n", "POST", 9, false, notes);
  connection.flush();
  await server.take("\r\n\r\n");
  server.send(reply("early"));
  await notes.until("closed");
  assert.deepEqual(pair.events(), ["response 200 5", "end", "closed"]);
});

test("a request body is framed by its length or in chunks, with trailers", async () => {
  await using pair = await open();
  const { connection, server, notes } = pair;
  const body = Buffer.from("hello");
  connection.send("POST /a HTTP/1.1\r\n\r\n", "POST", 5, false, notes);
  connection.sendBody(body, 0, 5);
  connection.sendEnd([]);
  assert.equal(await server.take("hello"), "POST /a HTTP/1.1\r\n\r\nhello");
  server.send(reply(""));
  await notes.until("end");
  connection.send("POST /b HTTP/1.1\r\n\r\n", "POST", UNKNOWN_LENGTH, false, notes);
  connection.sendBody(body, 0, 5);
  // A chunk of size 0 would end the body (RFC 9112 7.1).
  connection.sendBody(body, 0, 0);
  connection.sendBody(body, 1, 3);
  connection.sendEnd(["x-sum", "1"]);
  const text = "POST /b HTTP/1.1\r\n\r\n5\r\nhello\r\n2\r\nel\r\n0\r\nx-sum: 1\r\n\r\n";
  assert.equal(await server.take("x-sum: 1\r\n\r\n"), text);
});

/** Responses that are truncated or invalid. */
for (const { name, response, end, failure } of [
  { name: "no byte", response: "", failure: "before the response began: the upstream closed the connection" },
  {
    name: "a body shorter than its length",
    response: "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello",
    failure: "after the response began: the upstream closed the connection",
  },
  {
    name: "chunks without the last one",
    response: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
    failure: "after the response began: the upstream closed the connection",
  },
  {
    name: "half a head",
    response: "HTTP/1.1 200 OK\r\nContent-",
    failure: "after the response began: the upstream closed the connection",
  },
  {
    name: "a body that only the close delimits, and a reset",
    response: "HTTP/1.1 200 OK\r\n\r\nhello",
    end: "reset",
    failure: "after the response began: read ECONNRESET",
  },
  {
    name: "another protocol",
    response: "SSH-2.0-x\r\n",
    failure: "after the response began: invalid response: it does not begin with HTTP/1.x",
  },
  {
    name: "a head that has no end",
    response: `HTTP/1.1 200 OK\r\nx: ${"y".repeat(70_000)}`,
    failure: "after the response began: invalid response: the head is too large",
  },
  {
    name: "an invalid chunk",
    response: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nnone\r\n",
    failure: "after the response began: invalid response: chunk without a size",
  },
  {
    name: "33 interim responses",
    response: "HTTP/1.1 103 Early Hints\r\n\r\n".repeat(33),
    failure: "after the response began: invalid response: too many 1xx responses",
  },
] as const)
  test(`a response that fails: ${name}`, async () => {
    await using pair = await open();
    await ask(pair);
    if (response !== "") pair.server.send(response);
    if (end === "reset") {
      await pair.notes.until("body up to 5");
      pair.server.reset();
    } else if (failure.includes("closed")) pair.server.end();
    await pair.notes.until("closed");
    const [failed, closed] = pair.events().slice(-2);
    assert.deepEqual([failed, closed], [`failed ${failure}`, "closed"]);
    assert.equal(pair.events().includes("released"), false);
  });

test("a body that the close delimits ends with FIN, and so does the connection", async () => {
  await using pair = await open();
  await ask(pair);
  pair.server.send("HTTP/1.1 200 OK\r\n\r\nhello");
  pair.server.end();
  await pair.notes.until("closed");
  assert.deepEqual(pair.events(), ["response 200 unknown", "end", "closed"]);
  assert.equal(pair.notes.body, "hello");
});

test("interim responses come before the final one, at most 32 of them", async () => {
  await using pair = await open();
  await ask(pair);
  pair.server.send("HTTP/1.1 103 Early Hints\r\n\r\n".repeat(32) + reply("done"));
  await pair.notes.until("end");
  assert.equal(pair.events().filter((line) => line === "informational 103").length, 32);
  assert.deepEqual(pair.events().slice(-3), ["response 200 4", "released", "end"]);
});

test("bytes on an idle connection, or its end, close it: no request gets them", async () => {
  for (const leave of ["send", "end"] as const) {
    await using pair = await open();
    await ask(pair);
    pair.server.send(reply(""));
    await pair.notes.until("released");
    if (leave === "send") pair.server.send(reply("stray"));
    else pair.server.end();
    await pair.notes.until("closed");
    assert.equal(pair.connection.usable, false);
    assert.deepEqual(pair.events(), ["response 200 0", "released", "end", "closed"]);
    assert.equal(await pair.server.closed(), "end");
  }
});

test("after a 101, each direction ends separately", async () => {
  await using pair = await open();
  const { connection, server, notes } = pair;
  await ask(pair);
  server.send("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\nfirst");
  server.end();
  await notes.until("end");
  assert.deepEqual(pair.events(), ["response 101 tunnel", "end"]);
  assert.equal(notes.body, "first");
  const late = Buffer.from("late");
  connection.sendBody(late, 0, late.length);
  connection.sendEnd([]);
  assert.equal(await server.closed(), "end");
  assert.equal(server.received, "late");
  await notes.until("closed");
  assert.deepEqual(pair.events(), ["response 101 tunnel", "end", "closed"], "the close is not a failure by then");
});

test("a tunnel that the upstream resets has failed", async () => {
  await using pair = await open();
  const { connection, server, notes } = pair;
  connection.openTunnel(notes);
  server.send("hello");
  await notes.until("body up to 5");
  server.reset();
  await notes.until("closed");
  assert.deepEqual(pair.events(), ["failed after the response began: read ECONNRESET", "closed"]);
});

test("destroy ends the exchange without an event, and the upstream sees the end", async () => {
  await using pair = await open();
  await ask(pair);
  pair.connection.destroy();
  assert.equal(pair.connection.usable, false);
  await pair.server.closed();
  await pair.notes.until("closed");
  assert.deepEqual(pair.events(), ["closed"]);
});

test("a defect in a callback ends this exchange and its connection", async () => {
  await using pair = await open();
  await ask(pair);
  pair.notes.onHead = () => {
    throw new Error("defect");
  };
  const closed = once(pair.server.socket, "end");
  pair.server.send(reply("hello"));
  await closed;
  await pair.notes.until("closed");
  assert.deepEqual(pair.events(), ["fault: Error: defect", "closed"]);
});

import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { type TestContext, test } from "node:test";
import { FRONTEND } from "../../../test/helpers/frontend.ts";
import { untilTurn } from "../../../test/helpers/until.ts";
import type { Frontend } from "../../ir/ir.ts";
import { acceptLocally } from "../../net/testing/acceptor.ts";
import { type Downstream, type HttpHost, type ServerStream, type StreamAcceptor, TUNNEL } from "../stream.ts";
import { ServerConnection } from "./connection.ts";

interface Server extends AsyncDisposable {
  readonly connections: ServerConnection[];
  readonly faults: unknown[];
  /** What streams and hosts were notified of about failed requests. */
  readonly failures: string[];
  /** Changes while connections are open. */
  readonly host: { closesIdle: boolean; frontend: Frontend };
  /** `allowHalfOpen`: the client does not end when the server does. */
  dial(allowHalfOpen?: boolean): Socket;
}

/** A server whose streams `serve` begins. */
async function serve(start: (downstream: Downstream) => void, stream: Partial<ServerStream> = {}): Promise<Server> {
  const connections: ServerConnection[] = [];
  const faults: unknown[] = [];
  const failures: string[] = [];
  const clients: Socket[] = [];
  const nothing: ServerStream = {
    activity: {},
    onBody: () => {},
    onBodyBatch: () => {},
    onBodyEnd: () => {},
    onClientGone: (code, message) => failures.push(`${code} ${message}`),
    onClientDrain: () => {},
    ...stream,
  };
  const host: HttpHost & Server["host"] = {
    frontend: FRONTEND,
    draining: false,
    closesIdle: false,
    onVersionChange: () => {},
    onConnectionClose: () => {},
    onFault: (error) => faults.push(error),
  };
  const streams: StreamAcceptor = {
    open: (downstream) => ({ ...nothing, start: () => start(downstream) }),
    rejected: (_from, code, detail) => failures.push(`${code} ${detail}`),
  };
  const acceptor = await acceptLocally((transport) => {
    const connection = new ServerConnection(transport, host, streams);
    connections.push(connection);
    return connection;
  });
  return {
    connections,
    faults,
    failures,
    host,
    dial(allowHalfOpen = false) {
      const client = connect({ port: acceptor.port, host: "127.0.0.1", allowHalfOpen });
      client.on("error", () => {});
      clients.push(client);
      return client;
    },
    async [Symbol.asyncDispose]() {
      for (const client of clients) client.destroy();
      acceptor.close();
    },
  };
}

async function textOf(client: Socket): Promise<string> {
  let text = "";
  client.on("data", (bytes) => {
    text += bytes.toString();
  });
  await once(client, "end");
  return text;
}

test("a body slower than minBodyRate is 408; time in which the gateway does not read it does not count", async (t) => {
  let time = 1_000_000;
  t.mock.method(performance, "now", () => time);
  const opened: Downstream[] = [];
  const waiting: (() => void)[] = [];
  await using server = await serve((downstream) => {
    opened.push(downstream);
    downstream.readBody();
    for (const wake of waiting.splice(0)) wake();
  });
  const client = server.dial();
  const received = textOf(client);
  const begun = new Promise<void>((resolve) => waiting.push(resolve));
  client.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\nslow");
  await begun;
  const [connection] = server.connections;
  const pass = (ms: number): void => {
    time += ms;
    connection?.sweep(time);
  };
  pass(5000);
  opened[0]?.pauseBody();
  pass(60_000);
  opened[0]?.resumeBody();
  // 5 s without the pauses so far: within the grace of 10 s.
  pass(0);
  pass(4000);
  assert.equal(connection?.activity.state, "body");
  pass(2000);
  assert.match(await received, /^HTTP\/1.1 408 /);
});

test("after its last byte a request waits without a deadline, until the gateway waits for the body of the response", async (t) => {
  let time = 1_000_000;
  t.mock.method(performance, "now", () => time);
  const opened: Downstream[] = [];
  let ended = false;
  await using server = await serve(
    (downstream) => {
      opened.push(downstream);
      downstream.readBody();
    },
    {
      onBody: () => opened[0]?.pauseBody(),
      onBodyEnd: () => {
        ended = true;
      },
    },
  );
  const client = server.dial();
  const received = textOf(client);
  client.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody");
  await untilTurn(() => ended, "the body");
  const [connection] = server.connections;
  const pass = (ms: number): void => {
    time += ms;
    connection?.sweep(time);
  };
  // The upstream has taken the last bytes.
  opened[0]?.resumeBody();
  pass(1000);
  pass(FRONTEND.streamIdleTimeout);
  assert.equal(connection?.activity.state, "wait");
  opened[0]?.awaitResponseBody();
  pass(1000);
  pass(FRONTEND.streamIdleTimeout - 1);
  opened[0]?.awaitResponseBody();
  pass(1000);
  assert.equal(connection?.activity.state, "wait");
  pass(FRONTEND.streamIdleTimeout);
  assert.match(await received, /^HTTP\/1.1 504 /);
});

test("a client that pipelines does not delay others, even if responses follow in microtasks", async () => {
  const answered: Downstream[] = [];
  await using server = await serve((downstream) => {
    void Promise.resolve().then(() => {
      answered.push(downstream);
      downstream.sendHead({ status: 204, headers: [] }, 0, null);
      downstream.sendEnd([]);
    });
  });
  const request = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
  const count = 2000;
  const [pipelining, other] = [server.dial(), server.dial()];
  await Promise.all([once(pipelining, "connect"), once(other, "connect")]);
  const last = request.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n");
  const all = textOf(pipelining);
  const one = textOf(other);
  pipelining.write(request.repeat(count - 1) + last);
  other.write(last);
  await one;
  assert.equal((await all).split("HTTP/1.1 204").length - 1, count);
  const lone = answered.findIndex((each) => answered.indexOf(each) === answered.lastIndexOf(each));
  assert.ok(lone >= 0 && lone < 200, `the lone request was answered after ${lone} of the others`);
});

test("a client that closes its sending side gets the responses to its pipelined requests up to the one in progress", async () => {
  const count = 1000;
  let begun = 0;
  await using server = await serve((downstream) => {
    if (++begun === count) return;
    downstream.sendHead({ status: 204, headers: [] }, 0, null);
    downstream.sendEnd([]);
  });
  const client = server.dial(true);
  const received = textOf(client);
  client.end("GET / HTTP/1.1\r\nHost: a\r\n\r\n".repeat(count));
  assert.equal((await received).split("HTTP/1.1 204").length, count);
});

test("what is sent through a tunnel just before its end arrives", async () => {
  await using server = await serve((downstream) => {
    downstream.sendHead({ status: 101, headers: [] }, TUNNEL, null);
    downstream.sendBody(Buffer.from("bye"), 0, 3);
    downstream.sendEnd([]);
  });
  const client = server.dial(true);
  const received = textOf(client);
  client.write("GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: a\r\n\r\n");
  assert.match(await received, /\r\n\r\nbye$/);
  assert.deepEqual([server.failures, server.connections[0]?.activity.state], [[], "tunnel"]);
});

test("a client that pipelines is read no faster than it gets responses", async () => {
  const request = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
  const count = 50_000;
  let answered = 0;
  let mostHeld = 0;
  await using server = await serve((downstream) => {
    const { bytesReceived = 0 } = server.connections[0] ?? {};
    mostHeld = Math.max(mostHeld, bytesReceived - answered * request.length);
    answered++;
    downstream.sendHead({ status: 204, headers: [] }, 0, null);
    downstream.sendEnd([]);
  });
  const client = server.dial();
  const all = textOf(client);
  client.write(request.repeat(count - 1) + request.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n"));
  await all;
  assert.equal(answered, count);
  // At most two reads of 64 KiB, out of 1.3 MB.
  assert.ok(mostHeld <= 3 * 64 * 1024, `${mostHeld} bytes were held`);
});

test("a defect that throws ends its connection and no other, in a later turn too", async () => {
  let calls = 0;
  await using server = await serve((downstream) => {
    if (++calls === 1) throw new Error("defect");
    downstream.sendHead({ status: 204, headers: [] }, 0, null);
    downstream.sendEnd([]);
  });
  const request = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
  const broken = server.dial();
  broken.resume();
  broken.write(request);
  await once(broken, "close");
  assert.equal(String(server.faults[0]), "Error: defect");
  calls = -20;
  const pipelining = server.dial();
  pipelining.resume();
  pipelining.write(request.replace("Connection: close\r\n", "").repeat(40));
  await once(pipelining, "close");
  assert.equal(String(server.faults[1]), "Error: defect");
  const next = server.dial();
  next.write(request);
  assert.match(await textOf(next), /^HTTP\/1.1 204 /);
});

const GET = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

/** A client of `server`, whose connection is swept when `pass` moves the mocked clock. */
async function timed(server: Server, time: { now: number }) {
  const client = server.dial(true);
  let received = "";
  client.on("data", (bytes) => {
    received += bytes.toString();
  });
  await untilTurn(() => server.connections.length === 1, "the connection");
  const [connection] = server.connections;
  assert.ok(connection !== undefined);
  return {
    client,
    connection,
    get received() {
      return received;
    },
    /** Sends `text` and waits until the server has it. */
    async send(text: string) {
      const arrived = connection.bytesReceived + text.length;
      client.write(text);
      await untilTurn(() => connection.bytesReceived === arrived, "what was sent");
    },
    pass(ms: number) {
      time.now += ms;
      connection.sweep(time.now);
    },
  };
}

function clock(t: TestContext): { now: number } {
  const time = { now: 1_000_000 };
  t.mock.method(performance, "now", () => time.now);
  return time;
}

function answer(downstream: Downstream): void {
  downstream.sendHead({ status: 204, headers: [] }, 0, null);
  downstream.sendEnd([]);
}

test("headerReadTimeout counts from the first byte of a head, however it trickles in", async (t) => {
  const time = clock(t);
  await using server = await serve(answer);
  const peer = await timed(server, time);
  peer.pass(100_000);
  await peer.send("GET / HT");
  peer.pass(59_000);
  await peer.send("TP/1.1\r\nHo");
  peer.pass(999);
  assert.equal(peer.connection.activity.state, "head");
  peer.pass(1);
  await untilTurn(() => peer.received !== "", "the response");
  assert.match(peer.received, /^HTTP\/1.1 408 /);
  assert.deepEqual(server.failures, ["TG_CLIENT_TIMEOUT the request head did not arrive in time"]);
});

test("idleTimeout counts from the accept and from each response, and not while a request is in progress", async (t) => {
  const time = clock(t);
  const opened: Downstream[] = [];
  await using server = await serve((downstream) => opened.push(downstream));
  const peer = await timed(server, time);
  peer.pass(599_999);
  await peer.send(GET);
  peer.pass(700_000);
  assert.equal(peer.connection.activity.state, "wait");
  const [downstream] = opened;
  downstream?.sendHead({ status: 200, headers: [] }, 1, null);
  // Sets the deadline of the response, which must not outlive it.
  peer.pass(0);
  downstream?.sendBody(Buffer.from("x"), 0, 1);
  downstream?.sendEnd([]);
  peer.pass(0);
  peer.pass(599_999);
  assert.equal(peer.connection.activity.state, "idle");
  peer.pass(1);
  assert.equal(peer.connection.activity.state, "closed");
  assert.deepEqual(server.failures, []);
});

test("streamIdleTimeout counts from the last bytes of a response", async (t) => {
  const time = clock(t);
  const opened: Downstream[] = [];
  await using server = await serve((downstream) => {
    opened.push(downstream);
    downstream.sendHead({ status: 200, headers: [] }, 100, null);
  });
  const peer = await timed(server, time);
  await peer.send(GET);
  const [downstream] = opened;
  for (let turn = 0; turn < 3; turn++) {
    peer.pass(200_000);
    downstream?.sendBody(Buffer.from("x"), 0, 1);
    peer.pass(0);
  }
  assert.equal(peer.connection.activity.state, "wait");
  peer.pass(299_999);
  assert.equal(peer.connection.activity.state, "wait");
  peer.pass(1);
  assert.equal(peer.connection.activity.state, "closed");
  assert.match(server.failures.join(), /^TG_CLIENT_TIMEOUT .*no progress for too long$/);
});

test("after a rejected request the connection lingers for 2 s, then it is closed", async (t) => {
  const time = clock(t);
  await using server = await serve(answer);
  const peer = await timed(server, time);
  await peer.send("GET / HTTP/1.1\nHost: a\n\n");
  await untilTurn(() => peer.received !== "", "the response");
  assert.match(peer.received, /^HTTP\/1.1 400 /);
  peer.pass(0);
  peer.pass(1999);
  assert.equal(peer.connection.activity.state, "linger");
  peer.pass(1);
  assert.equal(peer.connection.activity.state, "closed");
});

test("a client that ends inside a head gets 400", async () => {
  await using server = await serve(answer);
  const client = server.dial();
  client.end("GET / HT");
  assert.match(await textOf(client), /^HTTP\/1.1 400 /);
  assert.deepEqual(server.failures, ["TG_INVALID_REQUEST the connection ended inside the request head"]);
});

test("a body that follows 100 Continue is read after a response that did not need it", async () => {
  let requests = 0;
  await using server = await serve((downstream) => {
    if (++requests === 1) downstream.sendInformational(100, []);
    answer(downstream);
  });
  const client = server.dial();
  const all = textOf(client);
  client.write("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n");
  await untilTurn(() => requests === 1, "the first request");
  client.write(`body${GET.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n")}`);
  assert.equal((await all).split("HTTP/1.1 204").length - 1, 2);
});

test("termination reports the end to the stream, once", async () => {
  await using server = await serve(() => {});
  const client = server.dial();
  const closed = once(client, "close");
  client.resume();
  client.write(GET);
  await untilTurn(() => server.connections[0]?.activity.state === "wait", "the request");
  server.connections[0]?.terminate("the gateway shut down");
  await closed;
  assert.deepEqual(server.failures, ["TG_SHUT_DOWN the gateway shut down before the request was complete"]);
});

test("an idle connection that a drain has missed is closed by the next sweep", async (t) => {
  const time = clock(t);
  await using server = await serve(answer);
  const peer = await timed(server, time);
  server.host.closesIdle = true;
  assert.equal(peer.connection.activity.state, "idle");
  peer.pass(0);
  assert.equal(peer.connection.activity.state, "closed");
});

test("a body that its stream does not read is aborted after streamIdleTimeout, without blame on the client", async (t) => {
  const time = clock(t);
  await using server = await serve((downstream) => {
    downstream.readBody();
    downstream.pauseBody();
  });
  const peer = await timed(server, time);
  await peer.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n");
  peer.pass(0);
  peer.pass(299_999);
  assert.equal(peer.connection.activity.state, "body");
  peer.pass(1);
  await untilTurn(() => peer.received !== "", "the response");
  assert.match(peer.received, /^HTTP\/1.1 504 /);
  assert.match(server.failures.join(), /^TG_UPSTREAM_TIMEOUT .*the upstream took no more of the request body$/);
});

test("a response has its announced length: a shorter one breaks the connection, a longer one is cut off", async () => {
  const hello = Buffer.from("hello");
  for (const [length, expected] of [
    [9, /^HTTP\/1.1 200 OK\r\n([a-z].*\r\n)*\r\nhello$/],
    [3, /\r\n\r\nhelHTTP\/1.1 200 OK\r\n(.*\r\n)*\r\nhel$/],
  ] as const) {
    await using server = await serve((downstream) => {
      downstream.sendHead({ status: 200, headers: ["content-length", String(length)] }, length, null);
      downstream.sendBody(hello, 0, 5);
      downstream.sendEnd([]);
    });
    const client = server.dial();
    const all = textOf(client);
    client.write(GET + GET.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n"));
    assert.match(await all, expected);
  }
});

test("HEAD, 204 and 304 have no body, whatever the stream sends (RFC 9112 6.3)", async () => {
  const statuses = [200, 204, 304];
  await using server = await serve((downstream) => {
    const headers = ["content-length", "5"];
    downstream.sendHead({ status: statuses.shift() ?? 200, headers }, 5, null);
    downstream.sendBody(Buffer.from("hello"), 0, 5);
    downstream.sendEnd([]);
  });
  const client = server.dial();
  const all = textOf(client);
  client.write(GET.replace("GET", "HEAD") + GET + GET.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n"));
  const text = await all;
  assert.deepEqual(text.match(/^HTTP\/1.1 \d+/gm), ["HTTP/1.1 200", "HTTP/1.1 204", "HTTP/1.1 304"]);
  assert.doesNotMatch(text, /hello/);
});

test("a connection older than maxConnectionDuration closes: at once when idle, else after the response in progress", async (t) => {
  const time = clock(t);
  for (const busy of [false, true]) {
    const opened: Downstream[] = [];
    await using server = await serve((downstream) => opened.push(downstream));
    server.host.frontend = { ...FRONTEND, maxConnectionDuration: 1000 };
    const peer = await timed(server, time);
    if (busy) await peer.send(GET);
    peer.pass(1000);
    assert.equal(peer.connection.activity.state, busy ? "wait" : "idle");
    peer.pass(1);
    if (busy) {
      assert.equal(peer.connection.activity.state, "wait");
      for (const downstream of opened) answer(downstream);
      await untilTurn(() => peer.received !== "", "the response");
      assert.match(peer.received, /\r\nconnection: close\r\n/);
      assert.equal(peer.connection.activity.state, "linger");
    } else assert.equal(peer.connection.activity.state, "closed");
  }
});

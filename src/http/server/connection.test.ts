import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { test } from "node:test";
import type { Frontend } from "../../ir/ir.ts";
import { Acceptor, SocketBudget } from "../../net/acceptor.ts";
import type { Downstream, HttpHost, ServerStream, StreamAcceptor } from "../stream.ts";
import { ServerConnection } from "./connection.ts";

const FRONTEND: Frontend = {
  maxBufferSize: 1024,
  maxHeadSize: 61_440,
  maxHeaders: 100,
  maxTargetSize: 8192,
  maxRequestBodySize: 0,
  idleTimeout: 600_000,
  headerReadTimeout: 60_000,
  streamIdleTimeout: 300_000,
  minBodyRate: 240,
  maxConnections: 10,
  maxConnectionDuration: 0,
  headerCase: "lowercase",
  keepalives: { enabled: false, time: 0 },
};

interface Server extends AsyncDisposable {
  readonly connections: ServerConnection[];
  readonly faults: unknown[];
  dial(): Socket;
}

/** A server whose streams `serve` begins. */
async function serve(start: (downstream: Downstream) => void): Promise<Server> {
  const connections: ServerConnection[] = [];
  const faults: unknown[] = [];
  const clients: Socket[] = [];
  const nothing: ServerStream = {
    activity: {},
    onBody: () => {},
    onBodyBatch: () => {},
    onBodyEnd: () => {},
    onClientGone: () => {},
    onClientDrain: () => {},
  };
  const host: HttpHost = {
    frontend: FRONTEND,
    draining: false,
    closesIdle: false,
    onConnectionClose: () => {},
    onFault: (error) => faults.push(error),
  };
  const streams: StreamAcceptor = {
    open: (downstream) => ({ ...nothing, start: () => start(downstream) }),
    refused: () => {},
  };
  const listen = { host: "127.0.0.1", port: 0, reusePort: false, keepAliveDelay: 0, budget: new SocketBudget() };
  const acceptor = await Acceptor.listen(listen, (transport) => {
    const connection = new ServerConnection(transport, host, streams);
    connections.push(connection);
    return connection;
  });
  return {
    connections,
    faults,
    dial() {
      const client = connect(acceptor.port, "127.0.0.1");
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

test("a body slower than minBodyRate is 408; the time when nobody took it does not count", async (t) => {
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
  // 5 s of its own so far: within the grace of 10 s, however long it was paused.
  pass(0);
  pass(4000);
  assert.equal(connection?.activity.state, "body");
  pass(2000);
  assert.match(await received, /^HTTP\/1.1 408 /);
});

test("a client that pipelines leaves the others their turns, also where answers follow in microtasks", async () => {
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

test("a client that pipelines is read no faster than it is answered", async () => {
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
  // Two reads of 64 KiB at most, of 1.3 MB altogether.
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
  broken.on("error", () => {});
  broken.resume();
  broken.write(request);
  await once(broken, "close");
  assert.equal(String(server.faults[0]), "Error: defect");
  calls = -20;
  const pipelining = server.dial();
  pipelining.on("error", () => {});
  pipelining.resume();
  pipelining.write(request.replace("Connection: close\r\n", "").repeat(40));
  await once(pipelining, "close");
  assert.equal(String(server.faults[1]), "Error: defect");
  const next = server.dial();
  next.write(request);
  assert.match(await textOf(next), /^HTTP\/1.1 204 /);
});

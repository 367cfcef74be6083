import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import { after, before, suite, test } from "node:test";
import type { TraceEvent } from "../../../src/trace/events.ts";
import { proxyTo, TestGateway } from "../../helpers/gateway.ts";
import { SEQUENCE_GET } from "./expected.ts";
import { admin, bodyAt, call, messageOf, rawClient, sequence, traceOf, Upstream } from "./support.ts";

const NO_BODY = SEQUENCE_GET.filter((each) => each !== "bodySnapshot response");

suite("traces of other kinds of requests", () => {
  let upstream: Upstream;
  let gateway: TestGateway;
  let port: number;

  before(async () => {
    upstream = await Upstream.start();
    upstream.on("/echo", (request, response) => request.pipe(response));
    gateway = await TestGateway.start(proxyTo(upstream.address));
    port = gateway.port();
  });
  after(async () => {
    await gateway.stop();
    await upstream.close();
  });

  test("HEAD and 304 have no body, whatever Content-Length says", async () => {
    upstream.on("/cached", (_request, response) => response.writeHead(304, { "content-length": "5" }).end());
    const head = await traceOf(gateway, () => call(port, { method: "HEAD" }));
    assert.deepEqual(sequence(head), NO_BODY);
    assert.deepEqual(sequence(await traceOf(gateway, () => call(port, { path: "/cached" }))), NO_BODY);
  });

  test("a chunked body is shown without its framing", async () => {
    const events = await traceOf(gateway, async () => {
      const head = "POST /echo HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n";
      const client = await rawClient(port, head);
      client.write("3\r\nabc\r\n");
      client.write("2\r\nde\r\n0\r\n\r\n");
      await once(client.resume(), "close");
    });
    assert.equal(bodyAt(events, "final request").text.toString(), "abcde");
    assert.equal(bodyAt(events, "response").text.toString(), "abcde");
  });

  test("a body that has arrived is shown before the backend responds", async () => {
    const hanging = upstream.hang("/think");
    const stream = admin(gateway).trace({ signal: AbortSignal.timeout(30_000) });
    await stream.opened;
    const answer = call(port, { method: "POST", path: "/think", body: "question" });
    const events: TraceEvent[] = [];
    for await (const { raw } of stream) {
      events.push(JSON.parse(raw) as TraceEvent);
      if (events.at(-1)?.message.type === "bodySnapshot" && events.length === 11)
        (await hanging).response.end("answer");
    }
    assert.equal(sequence(events)[10], "bodySnapshot final request");
    assert.equal(bodyAt(events, "final request").text.toString(), "question");
    assert.equal((await answer).body.toString(), "answer");
  });

  test("a backend that responds before it has read the body: the body is shown once it has arrived", async () => {
    upstream.on("/early", (request, response) => {
      response.writeHead(200).write("early");
      request.resume().on("end", () => response.end());
    });
    const events = await traceOf(gateway, async () => {
      const client = await rawClient(
        port,
        "POST /early HTTP/1.1\r\nHost: a.test\r\nContent-Length: 8\r\nConnection: close\r\n\r\nfirst",
      );
      await once(client, "data");
      client.resume().write("end");
      await once(client, "close");
    });
    const seen = sequence(events);
    assert.ok(seen.indexOf("bodySnapshot final request") > seen.indexOf("responseSnapshot final response"));
    assert.equal(bodyAt(events, "final request").text.toString(), "firstend");
  });

  test("an upgraded connection: the trace ends with the tunnel and shows no bodies", async () => {
    const chat = createServer((socket: Socket) => {
      socket.once("data", () => {
        socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: chat\r\n\r\n");
        socket.on("data", (chunk) => socket.write(chunk));
      });
      socket.on("end", () => socket.end());
      socket.on("error", () => {});
    }).listen(0, "127.0.0.1");
    await once(chat, "listening");
    const address = chat.address();
    assert.ok(typeof address === "object" && address !== null);
    await using tunnels = await TestGateway.start(proxyTo(`127.0.0.1:${address.port}`));
    const events = await traceOf(tunnels, async () => {
      const client = await rawClient(
        tunnels.port(),
        "GET /chat HTTP/1.1\r\nHost: a.test\r\nConnection: upgrade\r\nUpgrade: chat\r\n\r\n",
      );
      const [head] = (await once(client, "data")) as [Buffer];
      assert.match(head.toString(), /^HTTP\/1\.1 101 /);
      client.write("ping");
      const [echo] = (await once(client, "data")) as [Buffer];
      assert.equal(echo.toString(), "ping");
      client.end();
      await once(client.resume(), "close");
    });
    chat.close();
    assert.deepEqual(sequence(events), NO_BODY);
    assert.equal(messageOf(events, "requestFinished").status, 101);
    assert.equal(messageOf(events, "requestFinished").error, null);
  });

  test("a stale pooled connection: both attempts are shown, the first with its error", async () => {
    let served = 0;
    const flaky = createServer((socket: Socket) => {
      let first = true;
      socket.on("error", () => {});
      socket.on("data", () => {
        if (first) socket.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        else socket.destroy();
        first = false;
        served++;
      });
    }).listen(0, "127.0.0.1");
    await once(flaky, "listening");
    const address = flaky.address();
    assert.ok(typeof address === "object" && address !== null);
    await using own = await TestGateway.start(proxyTo(`127.0.0.1:${address.port}`));
    assert.equal((await call(own.port(), {})).status, 200);
    const events = await traceOf(own, async () => assert.equal((await call(own.port(), {})).status, 200));
    flaky.close();
    assert.equal(served, 3);
    const attempt = ["requestSnapshot final request", "backendCallStart", "backendCallResult"];
    const at = SEQUENCE_GET.indexOf("requestSnapshot final request");
    assert.deepEqual(sequence(events), SEQUENCE_GET.toSpliced(at, 0, ...attempt));
    const [first, second] = events.filter(({ message }) => message.type === "backendCallResult");
    assert.ok(first?.message.type === "backendCallResult" && first.message.error !== null);
    assert.ok(second?.message.type === "backendCallResult" && second.message.status === 200);
    assert.equal(first.message.timing?.reusedConnection, true);
    assert.equal(second.message.timing?.reusedConnection, false);
    assert.equal(messageOf(events, "requestFinished").error, null);
  });

  test("rejected CONNECT and TRACE requests are traced", async () => {
    const events = await traceOf(gateway, async () => {
      const client = await rawClient(port, "TRACE / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n");
      await once(client.resume(), "close");
    });
    assert.equal(messageOf(events, "requestFinished").status, 405);
  });
});

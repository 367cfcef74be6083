import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { TestPlane } from "../../helpers/data-plane.ts";
import { RawPeer, RawUpstream, statusOf, valuesOf } from "../../helpers/raw-peer.ts";
import { closedPort } from "../trace/support.ts";

const ROUTED = { frontend: { connect: "route" } } as const;
const CONNECT = "CONNECT db.example:5432 HTTP/1.1\r\nHost: db.example:5432\r\n\r\n";

suite("a routed CONNECT", () => {
  test("opens a tunnel to the backend of the route; each direction ends separately; the log has a line at the end", async () => {
    await using upstream = await RawUpstream.listen();
    await using plane = await TestPlane.start(upstream.port, ROUTED);
    const client = await RawPeer.connect(plane.port);
    client.send(`${CONNECT}early`);
    const answer = await client.message(true);
    assert.equal(answer.start, "HTTP/1.1 200 OK");
    assert.deepEqual(valuesOf(answer, "content-length").concat(valuesOf(answer, "transfer-encoding")), []);
    const backend = await upstream.connection();
    await backend.take("early");
    backend.send(Buffer.from([0, 255, 13, 10]));
    await client.take("\x00\xff\r\n");
    client.end();
    assert.equal(await backend.closed(), "end");
    assert.deepEqual(plane.lines, []);
    backend.send("after the client's end");
    backend.end();
    await client.take("after the client's end");
    const line = await plane.logged("http.status");
    assert.deepEqual(
      [line["http.method"], line["http.host"], line["http.status"], line.route, line.error],
      ["CONNECT", "db.example", 200, "default/route0", undefined],
    );
  });

  test("a reset of the backend resets the client", async () => {
    await using upstream = await RawUpstream.listen();
    await using plane = await TestPlane.start(upstream.port, ROUTED);
    const client = await RawPeer.connect(plane.port);
    client.send(CONNECT);
    await client.message(true);
    (await upstream.connection()).reset();
    assert.equal(await client.closed(), "reset");
  });

  test("closes the connection if it fails: the bytes after it were meant for the tunnel", async () => {
    await using plane = await TestPlane.start(await closedPort(), ROUTED);
    const client = await RawPeer.connect(plane.port);
    client.send(`${CONNECT}GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n`);
    const failed = await client.message();
    assert.deepEqual([statusOf(failed), ...valuesOf(failed, "connection")], [503, "close"]);
    assert.equal(await client.closed(), "end");
    assert.equal(client.received, "");
    const withBody = await RawPeer.connect(plane.port);
    withBody.send(CONNECT.replace("\r\n\r\n", "\r\nContent-Length: 1\r\n\r\nx"));
    const refused = await withBody.message();
    assert.deepEqual([statusOf(refused), refused.body], [400, "invalid request"]);
    assert.equal(await withBody.closed(), "end");
  });

  test("is rejected unless the configuration routes it", async () => {
    await using upstream = await RawUpstream.listen();
    await using plane = await TestPlane.start(upstream.port);
    const client = await RawPeer.connect(plane.port);
    client.send(CONNECT);
    assert.equal(statusOf(await client.message()), 405);
    assert.equal(await client.closed(), "end");
    assert.equal(upstream.connections.length, 0);
  });
});

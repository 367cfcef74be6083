import assert from "node:assert/strict";
import { test } from "node:test";
import { TestPlane } from "../../helpers/data-plane.ts";
import { RawPeer, RawUpstream, reply } from "../../helpers/raw-peer.ts";

test("a line has the bytes of both bodies, without their framing, and the duration as a number", async () => {
  await using upstream = await RawUpstream.answering(() => reply("answer"));
  await using plane = await TestPlane.start(upstream.port);
  const client = await RawPeer.connect(plane.port);
  const head = "POST /chunked HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
  client.send(`${head}5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n`);
  await client.message();
  client.send("GET /next HTTP/1.1\r\nHost: a\r\n\r\n");
  await client.message();
  const chunked = await plane.logged("/chunked");
  assert.deepEqual([chunked["bytes.received"], chunked["bytes.sent"]], ["hello world".length, "answer".length]);
  assert.equal(typeof chunked.duration, "number");
  const next = await plane.logged("/next");
  assert.deepEqual([next["bytes.received"], next["bytes.sent"]], [0, "answer".length]);
});

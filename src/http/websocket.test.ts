import assert from "node:assert/strict";
import { test } from "node:test";
import { isWebSocket, webSocketAccept, webSocketKey } from "./websocket.ts";

test("the proof for a key is that of the RFC's example", () => {
  assert.equal(webSocketAccept("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
});

test("keys are 16 random bytes", () => {
  const keys = [webSocketKey(), webSocketKey()];
  assert.notEqual(keys[0], keys[1]);
  for (const key of keys) assert.equal(Buffer.from(key, "base64").length, 16);
});

test("the name of the protocol is compared without its case", () => {
  assert.deepEqual([isWebSocket("WebSocket"), isWebSocket("websocket2"), isWebSocket("")], [true, false, false]);
});

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:net";
import { test } from "node:test";
import { AdminClient } from "./client.ts";

test("the client reports servers that are not admin servers, and truncated responses", async (t) => {
  let answer = "";
  const other = createServer((socket) => {
    socket.on("error", () => undefined);
    socket.once("data", () => socket.end(answer));
  });
  await once(other.listen(0, "127.0.0.1"), "listening");
  t.after(() => new Promise((resolve) => other.close(resolve)));
  const address = other.address();
  assert.ok(typeof address === "object" && address !== null);
  const client = new AdminClient(`http://127.0.0.1:${address.port}`);
  answer = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello";
  await assert.rejects(client.configDump(), { kind: "protocol", message: /something other than JSON/ });
  answer = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";
  await assert.rejects(client.configStatus(), { kind: "protocol" });
  answer = 'HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\n{"a"';
  await assert.rejects(client.configDump(), { kind: "protocol", message: /broke off/ });
  answer = "";
  await assert.rejects(client.configDump(), { kind: "unreachable", message: /without a response/ });
});

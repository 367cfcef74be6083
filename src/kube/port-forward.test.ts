import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { buffer } from "node:stream/consumers";
import { type TestContext, test } from "node:test";
import { TestApiServer } from "../../test/helpers/kube/api-server.ts";
import { KubeError, PodConnectionError } from "./client.ts";
import { PortForward } from "./port-forward.ts";

const TARGET = { namespace: "shop", pod: "web-1", port: 80 };

/** An API server with pod `web-1` and a forwarded port that leads to this server. */
async function forwarded(t: TestContext, serve?: (socket: Socket) => void) {
  const api = await TestApiServer.start();
  api.set({ apiVersion: "v1", kind: "Pod", metadata: { name: "web-1", namespace: "shop" } });
  let server: Server | undefined;
  if (serve !== undefined) {
    server = createServer(serve).listen(0, "127.0.0.1");
    await once(server, "listening");
    api.ports.set("shop/web-1:80", (server.address() as AddressInfo).port);
  }
  const forward = await PortForward.open(api.access, TARGET);
  t.after(async () => {
    forward.close();
    server?.close();
    await api[Symbol.asyncDispose]();
  });
  return { api, forward };
}

test("bytes pass both ways, whole and in order, also more than buffers hold", async (t) => {
  const { forward } = await forwarded(t, (socket) => {
    socket.on("data", (bytes: Buffer) => {
      if (!socket.write(bytes)) socket.pause();
      if (bytes.at(-1) === 0xff) socket.end();
    });
    socket.on("drain", () => socket.resume());
  });
  const sent = Buffer.alloc(8 * 1024 * 1024);
  for (let index = 0; index < sent.length; index++) sent[index] = index % 251;
  sent[sent.length - 1] = 0xff;
  const client = connect(forward.port, "127.0.0.1");
  client.write(sent);
  const received = await buffer(client);
  assert.equal(received.length, sent.length);
  assert.ok(received.equals(sent));
  assert.equal(forward.failure, undefined);
});

test("each connection has a stream of its own, and ends with it on either side", async (t) => {
  const open = new Set<Socket>();
  const accepted = Promise.withResolvers<void>();
  const { forward } = await forwarded(t, (socket) => {
    open.add(socket);
    socket.resume().once("close", () => open.delete(socket));
    socket.write("hello");
    if (open.size === 2) accepted.resolve();
  });
  const [first, second] = [connect(forward.port, "127.0.0.1"), connect(forward.port, "127.0.0.1")];
  await accepted.promise;
  const ended = [...open].map((socket) => once(socket, "close"));
  first.destroy();
  await Promise.race(ended);
  assert.equal(open.size, 1);
  // The pod closes the other one.
  for (const socket of open) socket.destroy();
  assert.equal((await buffer(second)).toString(), "hello");
});

test("a port that is closed in the pod, and a pod that is gone: closed without a byte, with the reason", async (t) => {
  const { api, forward } = await forwarded(t);
  assert.equal((await buffer(connect(forward.port, "127.0.0.1"))).length, 0);
  assert.ok(forward.failure instanceof PodConnectionError);
  assert.match(forward.failure.message, /^error forwarding port 80 .*connection refused$/);
  api.delete("Pod", "shop/web-1");
  assert.equal((await buffer(connect(forward.port, "127.0.0.1"))).length, 0);
  assert.ok(forward.failure instanceof KubeError);
  assert.deepEqual([forward.failure.status, forward.failure.reason], [404, "NotFound"]);
});

test("credentials are sent; without them the API server's response is the reason", async (t) => {
  const { api, forward } = await forwarded(t, (socket) => socket.end("hello"));
  api.bearer = "secret";
  assert.equal((await buffer(connect(forward.port, "127.0.0.1"))).toString(), "hello");
  const anonymous = { ...api.access, credentials: async () => ({ tls: {}, headers: {} }) };
  const other = await PortForward.open(anonymous, TARGET);
  t.after(() => other.close());
  assert.equal((await buffer(connect(other.port, "127.0.0.1"))).length, 0);
  assert.ok(other.failure instanceof KubeError && other.failure.status === 401);
});

test("an API server that goes away ends the connections", async (t) => {
  const { api, forward } = await forwarded(t, (socket) => socket.write("hello"));
  const client = connect(forward.port, "127.0.0.1");
  await once(client, "data");
  await api.stop();
  await once(client.resume(), "close");
  assert.equal((await buffer(connect(forward.port, "127.0.0.1"))).length, 0);
  assert.ok(forward.failure instanceof KubeError && forward.failure.status === 0);
  await api.listen();
});

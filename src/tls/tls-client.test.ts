import assert from "node:assert/strict";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { suite, type TestContext, test } from "node:test";
import { createServer, type TLSSocket } from "node:tls";
import { noOpenssl, TestCa } from "../../test/helpers/certificates.ts";
import { admitted } from "../net/testing/egress.ts";
import { TlsClient } from "./tls-client.ts";

/** Connects, and resolves when the server has sent a byte back: by then the tickets of TLS 1.3 have arrived. */
async function connect(client: TlsClient, port: number, host: string): Promise<TLSSocket> {
  const { promise, resolve, reject } = Promise.withResolvers<TLSSocket>();
  client.open(admitted({ host: "127.0.0.1", port }), host, 0, [], {
    onSecure: resolve,
    onClose: (error) => reject(error ?? new Error("closed")),
  });
  const socket = await promise;
  socket.write("!");
  await once(socket, "data");
  return socket;
}

test("a certificate for other names is refused, with its names and the setting", {
  skip: noOpenssl,
}, async (t: TestContext) => {
  using ca = new TestCa();
  const { cert, key } = ca.issue("a.example", "b.example");
  const server = createServer({ cert, key }, (socket) => socket.on("error", () => {}).pipe(socket));
  server.on("tlsClientError", () => {}).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  const config = { root: ca.cert, insecure: false, insecureHost: false };
  await assert.rejects(connect(new TlsClient(config), port, "other.example"), {
    message:
      "the certificate is for a.example, b.example, not for other.example; set backendTLS.hostname to a name that it has",
  });
  const named = { ...config, subjectAltNames: ["spiffe://a/b", "c.example"] };
  await assert.rejects(connect(new TlsClient(named), port, "a.example"), {
    message:
      "the certificate is for a.example, b.example, not for spiffe://a/b or c.example; set backendTLS.subjectAltNames to a name that it has",
  });
  for (const right of [
    { ...config, hostname: "b.example" },
    { ...named, subjectAltNames: ["x.example", "a.example"] },
  ])
    (await connect(new TlsClient(right), port, "other.example")).destroy();
});

suite("sessions with backends", { skip: noOpenssl }, () => {
  for (const maxVersion of ["TLSv1.2", "TLSv1.3"] as const) {
    test(`are resumed for the same name only (${maxVersion})`, async (t: TestContext) => {
      using ca = new TestCa();
      const { cert, key } = ca.issue("a.example", "b.example");
      const server = createServer({ cert, key, maxVersion }, (socket) => {
        socket.on("error", () => {});
        socket.pipe(socket);
      }).listen(0, "127.0.0.1");
      await once(server, "listening");
      t.after(() => server.close());
      const { port } = server.address() as AddressInfo;
      const client = new TlsClient({ root: ca.cert, insecure: false, insecureHost: false });
      const reused: boolean[] = [];
      for (const host of ["a.example", "a.example", "a.example", "b.example"]) {
        const socket = await connect(client, port, host);
        assert.equal(socket.authorized, true);
        reused.push(socket.isSessionReused());
        socket.destroy();
      }
      assert.deepEqual(reused, [false, true, true, false]);
    });
  }
});

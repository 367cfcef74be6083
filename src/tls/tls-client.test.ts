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

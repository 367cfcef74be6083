import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { connect as connectTls } from "node:tls";
import { acceptLocally } from "../../net/testing/acceptor.ts";
import { TicketSecrets } from "../../tls/ticket-keys.ts";
import { type Arrival, type Ingress, type LiveConnection, REJECTED } from "./arrival.ts";
import { selectTlsListener } from "./tls-handshake.ts";

test("a validation by tls-alpn-01 is looked up once, whatever else the client sends, and not made after its connection has ended", async () => {
  const lookups: PromiseWithResolvers<string | undefined>[] = [];
  const challenges = {
    forTls() {
      const lookup = Promise.withResolvers<string | undefined>();
      lookups.push(lookup);
      return lookup.promise;
    },
  };
  let handshakes = 0;
  const ended: string[] = [];
  const stages: LiveConnection[] = [];
  const ingress = {
    bind: { protocol: "tls", frontend: {}, listeners: { find: () => ({ challenges }) } },
    services: {
      get tickets() {
        handshakes++;
        return new TicketSecrets();
      },
    },
    onStageBegun: (stage: LiveConnection) => stages.push(stage),
    onStageFailed: (_stage: unknown, message: string) => ended.push(message),
  } as unknown as Ingress;
  const acceptor = await acceptLocally((transport) =>
    selectTlsListener({ transport } as Arrival, ingress, () => REJECTED),
  );
  for (const [i, end] of ["no validation of a.example is pending", "terminated"].entries()) {
    const socket = connect(acceptor.port, "127.0.0.1");
    connectTls({ socket, servername: "a.example", ALPNProtocols: ["acme-tls/1"] }).on("error", () => {});
    while (lookups.length === i) await setImmediate();
    socket.write("more");
    for (let turns = 0; turns < 10; turns++) await setImmediate();
    assert.equal(lookups.length, i + 1);
    if (end === "terminated") stages[i]?.terminate("it was terminated");
    lookups[i]?.resolve(end === "terminated" ? "key authorization" : undefined);
    await once(socket, "close");
    assert.ok(ended[i]?.includes(end), ended[i]);
  }
  assert.deepEqual([ended.length, handshakes], [2, 0]);
  acceptor.close();
});

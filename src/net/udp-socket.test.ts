import assert from "node:assert/strict";
import { test } from "node:test";
import { UdpPeer } from "../../test/helpers/udp-peer.ts";
import { OwnSockets } from "../base/own-sockets.ts";
import { UdpPort } from "./udp-socket.ts";

const open = (port = 0): Promise<UdpPort> =>
  UdpPort.open({ host: "127.0.0.1", port, reusePort: false, own: new OwnSockets() }, () => {});

test("a response to port 0, which a forged datagram may name as its source, is dropped and does no harm", async () => {
  const port = await open();
  await using peer = await UdpPeer.open();
  assert.equal(port.send(Buffer.from("lost"), { address: "127.0.0.1", port: 0 }), false);
  assert.equal(port.send(Buffer.from("sent"), { address: "127.0.0.1", port: peer.port }), true);
  assert.equal((await peer.next()).text, "sent");
  port.close();
});

test("a port in use is an error, and can be bound once it is free", async () => {
  const first = await open();
  await assert.rejects(open(first.port), { code: "EADDRINUSE" });
  const { port } = first;
  first.close();
  const second = await open(port);
  assert.equal(second.port, port);
  second.close();
});

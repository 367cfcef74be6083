/**
 * The kubelet's side of port forwarding: the WebSocket subprotocol `v4.channel.k8s.io`, one connection to a local port each.
 * Written from the kubelet's behavior: channel 0 carries bytes, channel 1 the error text, both begin with the port number in
 * little endian, and the WebSocket is closed when the connection ends.
 */
import type { IncomingMessage } from "node:http";
import { connect } from "node:net";
import type { Duplex } from "node:stream";
import { type RawData, type WebSocket, WebSocketServer } from "ws";

const server = new WebSocketServer({
  noServer: true,
  handleProtocols: (offered) => (offered.has("v4.channel.k8s.io") ? "v4.channel.k8s.io" : false),
});

/** Accepts the upgrade and forwards to the local port; without one it reports that the port is closed, as the kubelet does. */
export function servePortForward(
  request: IncomingMessage,
  socket: Duplex,
  head: Buffer,
  port: number,
  local: number | undefined,
): void {
  server.handleUpgrade(request, socket, head, (remote) => carry(remote, port, local));
}

function carry(remote: WebSocket, port: number, local: number | undefined): void {
  const send = (channel: number, bytes: Uint8Array) => remote.send(Buffer.concat([Buffer.from([channel]), bytes]));
  const number = Buffer.alloc(2);
  number.writeUInt16LE(port);
  send(0, number);
  send(1, number);
  const refuse = () => {
    const dial = `failed to connect to localhost:${port} inside namespace "ns", IPv4: dial tcp4 127.0.0.1:${port}: connect: connection refused`;
    send(1, Buffer.from(`error forwarding port ${port} to pod abc, uid : ${dial}`));
    remote.close();
  };
  if (local === undefined) {
    refuse();
    return;
  }
  const target = connect(local, "127.0.0.1");
  target.once("error", refuse);
  target.on("data", (bytes: Buffer) => send(0, bytes));
  target.once("end", () => remote.close());
  remote.on("message", (data: RawData) => {
    const frame = data as Buffer;
    if (frame[0] === 0) target.write(frame.subarray(1));
  });
  remote.once("close", () => target.destroy());
}

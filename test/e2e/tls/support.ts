import { once } from "node:events";
import { type ConnectionOptions, connect, type TLSSocket } from "node:tls";
import type { RunningGateway } from "../../helpers/gateway.ts";
import type { LocalGateway } from "../../helpers/local-gateway.ts";
import { type RawMessage, RawPeer } from "../../helpers/raw-peer.ts";

/** A TLS connection to the gateway; rejects with the error of the handshake. */
export async function tlsConnect(
  port: number,
  options: ConnectionOptions,
): Promise<{ peer: RawPeer; socket: TLSSocket }> {
  const socket = connect({ host: "127.0.0.1", port, allowHalfOpen: true, ...options } as ConnectionOptions);
  await once(socket, "secureConnect");
  return { peer: new RawPeer(socket), socket };
}

/** One GET over its own TLS connection. */
export async function get(port: number, host: string, options: ConnectionOptions, path = "/"): Promise<RawMessage> {
  const { peer } = await tlsConnect(port, { servername: host, ...options });
  try {
    peer.send(`GET ${path} HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
    return await peer.message();
  } finally {
    peer.socket.destroy();
  }
}

/** The error of `get` if the gateway closes the connection without a response. */
export const NO_RESPONSE = /; ended: (?:end|reset); received: $/;

/** Waits for a log line with all of these fields. */
export async function logged(
  gateway: Pick<RunningGateway, "lines" | "until">,
  fields: Readonly<Record<string, unknown>>,
): Promise<void> {
  const fits = (line: Readonly<Record<string, unknown>>): boolean =>
    Object.entries(fields).every(([name, value]) => line[name] === value);
  await gateway.until(() => gateway.lines.some(fits), `a log line with ${JSON.stringify(fields)}`);
}

/** The value of the first matching sample in the gateway's metrics; 0 if no sample matches. */
export async function metric(
  gateway: RunningGateway | LocalGateway,
  name: string,
  ...labels: string[]
): Promise<number> {
  const line = (await gateway.metricsText())
    .split("\n")
    .find((each) => each.startsWith(`tracegate_${name}{`) && labels.every((label) => each.includes(label)));
  return Number(line?.split(" ").at(-1) ?? 0);
}

/** A client of the gateway that sends one request, in each way that a rehearsal can. */
import { once } from "node:events";
import { connect, type TLSSocket } from "node:tls";
import type { RequestFacts } from "../../../src/rehearsal/facts.ts";
import { H2Client } from "../../helpers/h2-client.ts";
import { type RawMessage, RawPeer, statusOf } from "../../helpers/raw-peer.ts";

export interface Received {
  readonly status: number | undefined;
  /** Names and values alternate. */
  readonly headers: readonly string[];
  readonly body: string;
}

export const NOTHING: Received = { status: undefined, headers: [], body: "" };

/** Resolves with the response and a function that closes the connection; without a status if the gateway closes it before. */
export async function send(port: number, facts: RequestFacts): Promise<[Received, close: () => void]> {
  const peer = facts.serverName === undefined ? await RawPeer.connect(port) : await secure(port, facts);
  if (peer === undefined) return [NOTHING, () => {}];
  const { alpnProtocol } = peer.socket as Partial<TLSSocket>;
  const isHttp2 = facts.serverName === undefined ? facts.version === "2" : alpnProtocol === "h2";
  const response = (isHttp2 ? overHttp2(peer, facts) : overHttp1(peer, facts)).catch((error: unknown) => {
    if (peer.ended === undefined) throw error;
    return NOTHING;
  });
  return [await response, () => peer.socket.destroy()];
}

async function secure(port: number, { url, version, certificate }: RequestFacts): Promise<RawPeer | undefined> {
  const socket = connect({
    ...{ port, host: "127.0.0.1", servername: url.hostname, rejectUnauthorized: false, allowHalfOpen: true },
    ALPNProtocols: version === "1.1" ? ["http/1.1"] : ["h2", "http/1.1"],
    ...(certificate !== undefined && { cert: certificate, key: certificate }),
  });
  const peer = new RawPeer(socket);
  await Promise.race([once(socket, "secureConnect"), once(socket, "close")]).catch(() => {});
  return peer.ended === undefined ? peer : undefined;
}

async function overHttp1(peer: RawPeer, { head, body }: RequestFacts): Promise<Received> {
  peer.send(head);
  let response: RawMessage | undefined;
  if (/^expect:/im.test(head)) response = await peer.message();
  if (response === undefined || statusOf(response) === 100) {
    peer.send(/^transfer-encoding:/im.test(head) ? chunked(body) : body);
    // Each attempt may ask for the body.
    do response = await peer.message();
    while (statusOf(response) === 100);
  }
  return { status: statusOf(response), headers: response.fields.flatMap(fieldOf), body: response.body };
}

/** A chunk for each byte. */
function chunked(body: Buffer): string {
  return `${[...body.toString("latin1")].map((byte) => `1\r\n${byte}\r\n`).join("")}0\r\n\r\n`;
}

const HTTP1_ONLY = new Set(["host", "transfer-encoding"]);

async function overHttp2(peer: RawPeer, { url, method, target, head, body }: RequestFacts): Promise<Received> {
  const client = new H2Client(peer);
  client.greet();
  const [, ...lines] = head.slice(0, -4).split("\r\n");
  const fields = lines.map(fieldOf).map(([name, value]) => [name.toLowerCase(), value] as const);
  const authority = fields.find(([name]) => name === "host")?.[1] ?? "";
  const pseudo = [":method", method, ":scheme", url.protocol.slice(0, -1), ":path", target, ":authority", authority];
  client.headers(1, [...pseudo, ...fields.filter(([name]) => !HTTP1_ONLY.has(name)).flat()], body.length === 0);
  if (body.length > 0) client.data(1, body.toString("latin1"));
  const response = await client.response(1);
  const section = response.sections.findLast(([name]) => name === ":status") ?? [];
  return { status: H2Client.status(response), headers: section.slice(2), body: response.body };
}

function fieldOf(line: string): [name: string, value: string] {
  const colon = line.indexOf(":");
  return [line.slice(0, colon), line.slice(colon + 1).trim()];
}

/**
 * The messages by which the runner of the conformance suite of Connect starts a server (connectrpc.conformance.v1,
 * server_compat.proto). On the wire each follows its length in four bytes.
 */
import type { Readable } from "node:stream";
import { type Message, MessageType } from "../../helpers/envoy/wire.ts";

/** `Protocol` */
export const GRPC = 2;
/** `HTTPVersion` */
export const HTTP_VERSION_2 = 2;

const Credentials = new MessageType("connectrpc.conformance.v1.TLSCreds", { cert: [1, "bytes"], key: [2, "bytes"] });

/** What the runner wants of the server. */
export const ServerRequest = new MessageType("connectrpc.conformance.v1.ServerCompatRequest", {
  protocol: [1, "int32"],
  http_version: [2, "int32"],
  use_tls: [4, "bool"],
  /** PEM, of the CA that clients' certificates have to come from. */
  client_tls_cert: [5, "bytes"],
  message_receive_limit: [6, "uint32"],
  server_creds: [7, Credentials],
});
export type ServerRequest = Message<typeof ServerRequest.fields>;

/** Where the server listens. */
export const ServerResponse = new MessageType("connectrpc.conformance.v1.ServerCompatResponse", {
  host: [1, "string"],
  port: [2, "uint32"],
  pem_cert: [3, "bytes"],
});

const LENGTH_BYTES = 4;

export function delimited(message: Uint8Array): Buffer {
  const bytes = Buffer.alloc(LENGTH_BYTES + message.length);
  bytes.writeUInt32BE(message.length);
  bytes.set(message, LENGTH_BYTES);
  return bytes;
}

/** Reads one message, without its length; what follows stays in the stream. Rejects when the stream ends before. */
export async function readDelimited(stream: Readable): Promise<Buffer> {
  return take(stream, (await take(stream, LENGTH_BYTES)).readUInt32BE());
}

/** Reads a line, without its end. */
export async function readLine(stream: Readable): Promise<string> {
  let line = "";
  for (;;) {
    const character = String(await take(stream, 1));
    if (character === "\n") return line;
    line += character;
  }
}

async function take(stream: Readable, length: number): Promise<Buffer> {
  if (length === 0) return Buffer.alloc(0);
  for (;;) {
    const bytes = stream.read(length) as Buffer | null;
    if (bytes?.length === length) return bytes;
    if (bytes !== null || stream.readableEnded) throw new Error("the stream ended before a message was complete");
    await new Promise((resolve) => {
      stream.once("readable", resolve);
      stream.once("end", resolve);
    });
  }
}

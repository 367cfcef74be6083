import type { Rostered } from "../../base/roster.ts";
import { clientName, Peer } from "../../net/addresses.ts";
import type { TlsSession, Transport } from "../../net/transport.ts";
import type { MadeFields } from "../h1/serialize.ts";
import type { ClientConnection, NetworkMetadata } from "../stream.ts";

/** What the requests of a client's connection share, in every version of HTTP. The connection class of each version extends it. */
export class ClientPeer extends Peer implements ClientConnection, Rostered {
  place = -1;
  readonly protocol: "http" | "https";
  readonly tls: TlsSession | undefined;
  readonly metadata: NetworkMetadata | undefined;
  madeFields: MadeFields | undefined;
  readonly #transport: Transport;
  #name: string | undefined;

  /** `metadata`: what the network authorization has returned about the connection. */
  constructor(transport: Transport, metadata: NetworkMetadata | undefined) {
    super(transport);
    this.#transport = transport;
    this.protocol = transport.tls === undefined ? "http" : "https";
    this.tls = transport.tls;
    this.metadata = metadata;
  }

  get name(): string {
    this.#name ??= clientName(this);
    return this.#name;
  }

  get bytesReceived(): number {
    return this.#transport.bytesRead;
  }

  get bytesSent(): number {
    return this.#transport.bytesWritten;
  }
}

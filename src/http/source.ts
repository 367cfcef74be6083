import type { SourceParts } from "../cel/index.ts";
import type { Addresses } from "../net/addresses.ts";
import type { TlsSession } from "../net/transport.ts";

/** A client connection. */
export type Connected = Addresses & { readonly tls: TlsSession | undefined };

/** Finds what service discovery knows at an address. */
interface Discovered {
  find(address: string): unknown;
}

/**
 * A connection's client as expressions see it (`source`, docs/expressions.md#variables). Getters, so that a certificate is parsed
 * only for expressions that read it.
 */
export class Source implements SourceParts {
  readonly #from: Connected;
  readonly #discovered: Discovered;

  constructor(from: Connected, discovered: Discovered) {
    this.#from = from;
    this.#discovered = discovered;
  }

  /** Address of the client, from the PROXY header if there was one. X-Forwarded-For never changes it. */
  get address(): string {
    return this.#from.remoteAddress;
  }
  get port(): number {
    return this.#from.remotePort;
  }
  /** Address of the TCP peer: the proxy in front if a PROXY header was read. */
  get rawAddress(): string {
    return this.#from.rawAddress;
  }
  get rawPort(): number {
    return this.#from.rawPort;
  }
  /** The CONNECT request of the tunnel that carries this connection; undefined outside tunnels. */
  get connectHeaders(): SourceParts["connectHeaders"] {
    return this.#from.connectHead;
  }
  /** Found by address only, which can be spoofed on some networks: not for authorization. */
  get unverifiedWorkload(): unknown {
    return this.#discovered.find(this.#from.remoteAddress);
  }
  /** From here on: from the client's certificate, verified in the handshake; undefined without one. */
  get identity(): unknown {
    return this.#from.tls?.client?.identity;
  }
  get spiffeId(): string | undefined {
    return this.#from.tls?.client?.spiffeId;
  }
  get subjectAltNames(): readonly string[] | undefined {
    return this.#from.tls?.client?.subjectAltNames;
  }
  get issuer(): string | undefined {
    return this.#from.tls?.client?.issuer;
  }
  get subject(): string | undefined {
    return this.#from.tls?.client?.subject;
  }
  get subjectCn(): string | undefined {
    return this.#from.tls?.client?.subjectCn;
  }
  get certificate(): unknown {
    return this.#from.tls?.client?.pem;
  }
}

import type { SourceParts } from "../cel/index.ts";
import type { Addresses } from "../net/addresses.ts";
import type { TlsSession } from "../net/transport.ts";

/** A client connection. */
export type Connected = Addresses & { readonly tls: TlsSession | undefined };

/** What service discovery has at an address. */
export interface Discovered {
  find(address: string): unknown;
}

/** A connection's client as expressions see it (`source`, reference 4.7); its certificate is taken apart when it is read. */
export class Source implements SourceParts {
  readonly #from: Connected;
  readonly #discovered: Discovered;

  constructor(from: Connected, discovered: Discovered) {
    this.#from = from;
    this.#discovered = discovered;
  }

  get address(): string {
    return this.#from.remoteAddress;
  }
  get port(): number {
    return this.#from.remotePort;
  }
  get rawAddress(): string {
    return this.#from.rawAddress;
  }
  get rawPort(): number {
    return this.#from.rawPort;
  }
  get connectHeaders(): SourceParts["connectHeaders"] {
    return this.#from.connectHead;
  }
  get unverifiedWorkload(): unknown {
    return this.#discovered.find(this.#from.remoteAddress);
  }
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

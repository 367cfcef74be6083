/** The first stage of a connection: the client's address, from a proxy in front. */
import { parseProxyHeader } from "../../base/proxy-protocol.ts";
import type { ProxyProtocol } from "../../ir/ir.ts";
import { ConnectionStage, type StageOwner } from "../../net/connection-stage.ts";
import type { Transport, TransportHandler } from "../../net/transport.ts";
import { type Arrival, type Ingress, type LiveConnection, type Next, REJECTED, refusal } from "./arrival.ts";

/** Milliseconds from accept to the end of the PROXY header (reference 3.32): proxies send it in their first packet. */
const HEADER_TIMEOUT_MS = 5_000;

const NOT_A_PROXY =
  "this port serves the load balancers that frontendPolicies.proxyProtocol.from names; the address of this peer is not among them";

/** First stage: the address from the PROXY header. Connections inside tunnels have none. */
export function readProxyHeader(arrival: Arrival, ingress: Ingress, next: Next): TransportHandler {
  const { proxyProtocol } = ingress.bind.frontend;
  if (proxyProtocol === undefined || arrival.tunnelled) return next(arrival);
  if (ingress.bind.proxies?.contains(arrival.transport.rawAddress) === false) {
    if (proxyProtocol.mode === "optional") return next(arrival);
    const origin = ingress.bind.frontend.origins?.proxyProtocol?.[0];
    ingress.onRejected(arrival, refusal("proxyProtocol", "TG_AUTHORIZATION", NOT_A_PROXY, origin));
    return REJECTED;
  }
  const stage = new ProxyHeaderStage(arrival.transport, proxyProtocol, ingress, () => next(arrival));
  ingress.onStageBegun(stage);
  return stage;
}

/**
 * Reads the header in which a proxy in front passes the client's address (PROXY protocol, docs/configuration.md#proxyprotocol).
 * Only ports that expect one read it: otherwise any client could claim any address.
 */
export class ProxyHeaderStage extends ConnectionStage implements LiveConnection {
  readonly #settings: ProxyProtocol;
  readonly #next: () => TransportHandler;

  /** `timeoutMs`: milliseconds until the whole header must have arrived. */
  constructor(
    transport: Transport,
    settings: ProxyProtocol,
    owner: StageOwner,
    next: () => TransportHandler,
    timeoutMs = HEADER_TIMEOUT_MS,
  ) {
    super(owner);
    this.#settings = settings;
    this.#next = next;
    this.begin(transport, timeoutMs);
  }

  protected readonly state = "proxy header";

  protected get closedEarly(): string {
    return `the connection closed before ${this.#expected}`;
  }

  protected onHeld(): void {
    const { held } = this;
    // At most 528 bytes (base/proxy-protocol.ts) are parsed again with every byte that arrives.
    const header = parseProxyHeader(held.view(), this.#settings.version);
    switch (header.state) {
      case "more":
        return;
      case "invalid":
        this.reject(header.detail);
        return;
      case "absent":
        if (this.#settings.mode === "strict") this.reject(`the connection does not begin with ${this.#expected}`);
        else this.pass(this.#next);
        return;
      case "complete":
        if (header.addresses !== undefined) this.transport.setAddresses(header.addresses);
        held.consume(held.start + header.length);
        this.pass(this.#next);
    }
  }

  /** If the header is optional, a silent client has none: it may be waiting for the server to speak first. */
  protected onExpired(): void {
    if (this.#settings.mode === "optional" && this.held.length === 0) this.pass(this.#next);
    else this.reject(`${this.#expected} did not arrive in time`);
  }

  get #expected(): string {
    const { version } = this.#settings;
    return version === "all" ? "a PROXY header" : `a PROXY header of version ${version.slice(1)}`;
  }
}

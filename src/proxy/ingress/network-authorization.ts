/** The last stage of a connection: may this client connect at all? */
import type { Activation } from "../../cel/index.ts";
import { ConnectionStage } from "../../net/connection-stage.ts";
import type { TransportHandler } from "../../net/transport.ts";
import type { Denial } from "../../policies/authorization/rules.ts";
import type { NetworkAuthorizer, NetworkDecision } from "../../policies/ext-authz/network.ts";
import { originInFrontend } from "../compile/provenance.ts";
import { connectionVariables, secretsOfConnection } from "../variables/connection-variables.ts";
import {
  type Arrival,
  type Ingress,
  type LiveConnection,
  type Next,
  protocolOf,
  REJECTED,
  type Refusal,
  refusal,
} from "./arrival.ts";

/** Bytes that are read from a client before the decision: waiting clients must not fill the memory. */
const HELD_LIMIT = 64 * 1024;

/**
 * Last stage: `networkAuthorization`, then `networkExtAuthz`, once per connection. Rejected connections are closed without a
 * response: there is no request yet, and their protocol is unknown.
 */
export function authorizeNetwork(arrival: Arrival, ingress: Ingress, next: Next): TransportHandler {
  const { network, networkAuthorizer } = ingress.bind;
  if (network === undefined && networkAuthorizer === undefined) return next(arrival);
  const variables = connectionVariables(arrival.transport, arrival.serverName, ingress.services);
  const denial = network?.decide(variables);
  if (denial !== undefined) {
    ingress.onRejected(arrival, refusalOf(denial, variables, ingress));
    return REJECTED;
  }
  if (networkAuthorizer === undefined) return next(arrival);
  const stage = new AuthorizationStage(arrival, ingress, next);
  ingress.onStageBegun(stage);
  stage.ask(networkAuthorizer, variables);
  return stage;
}

/** Why `networkAuthorization` rejects a client. */
export function refusalOf(
  denial: Denial,
  variables: Activation,
  { bind: { network, frontend }, services }: Pick<Ingress, "bind" | "services">,
): Refusal {
  const origin = frontend.origins?.networkAuthorization?.[network?.deciding(denial) ?? 0];
  const { accessLog } = services;
  const shown = accessLog.explains && accessLog.enabled("info");
  const text = shown ? network?.describe(denial, variables, secretsOfConnection(services)) : undefined;
  return refusal("networkAuthorization", "TG_AUTHORIZATION", text, origin);
}

/** Waits for the service. Reads from the client meanwhile, so that its close is noticed, but does not parse the bytes. */
class AuthorizationStage extends ConnectionStage implements LiveConnection {
  readonly #arrival: Arrival;
  readonly #ingress: Ingress;
  readonly #next: Next;
  readonly #cancels: (() => void)[] = [];

  constructor(arrival: Arrival, ingress: Ingress, next: Next) {
    super(ingress);
    this.#arrival = arrival;
    this.#ingress = ingress;
    this.#next = next;
    // The call has its own deadline.
    this.begin(arrival.transport, undefined);
  }

  protected readonly state = "authorizing";
  protected readonly closedEarly = "the connection closed before it was authorized";

  /** Plain TCP clients may send everything and FIN, then wait (`nc`). HTTP clients that send FIN have given up. */
  protected override get allowHalfClose(): boolean {
    return protocolOf(this.#arrival, this.#ingress.bind) === "tcp";
  }

  /** `variables`: what expressions read of the connection. The decision always follows after this call has returned. */
  ask(authorizer: NetworkAuthorizer, variables: Activation): void {
    authorizer
      .ask(variables, (cancel) => (this.closed ? cancel() : this.#cancels.push(cancel)))
      .then((decision) => this.#decide(decision))
      .catch((error: unknown) => {
        this.onFault(error);
        this.transport.destroy();
      });
  }

  protected onHeld(): void {
    if (this.held.length >= HELD_LIMIT) this.transport.pause();
  }

  protected onExpired(): void {}

  /** A client that leaves cancels the call: abandoned connections must not keep the service busy. */
  protected override onClosed(): void {
    for (const cancel of this.#cancels) cancel();
  }

  #decide(decision: NetworkDecision): void {
    if (decision.allowed) this.pass(() => this.#next({ ...this.#arrival, metadata: decision.metadata }));
    else if (this.leave()) this.#reject(decision.why);
  }

  #reject(why: string): void {
    const { frontend } = this.#ingress.bind;
    const origin = originInFrontend("TG_EXT_AUTHZ", frontend);
    this.#ingress.onRejected(this.#arrival, refusal("networkExtAuthz", "TG_EXT_AUTHZ", why, origin));
  }
}

/** `ipAccess` for connections: may a client with this address connect at all? */
import type { TransportHandler } from "../../net/transport.ts";
import { decisions, isAllowed } from "../../policies/ip-access/access-lists.ts";
import type { CompiledListener } from "../compile/compiled.ts";
import { type Arrival, type Ingress, type Next, REJECTED, type Refusal, refusal } from "./arrival.ts";

/**
 * Second stage: `frontendPolicies.ipAccess`, once per connection. It follows the PROXY header, which has the address, and precedes TLS:
 * a client that may not connect costs no handshake.
 */
export function checkAddress(arrival: Arrival, ingress: Ingress, next: Next): TransportHandler {
  const denial = addressRefusal(arrival.transport.remoteAddress, undefined, ingress);
  if (denial === undefined) return next(arrival);
  ingress.onRejected(arrival, denial);
  return REJECTED;
}

/** Why the lists of the port, or with `listener` those of a listener without HTTP, reject this client; undefined if they do not. */
export function addressRefusal(
  address: string,
  listener: CompiledListener | undefined,
  { bind, services }: Pick<Ingress, "bind" | "services">,
): Refusal | undefined {
  const { access } = listener ?? bind;
  if (access === undefined) return undefined;
  const allowed = services.policies.assumedAddress?.(access.condition, false);
  const decision = allowed === undefined ? access.decide(address) : ({ code: "assumed", allowed } as const);
  if (isAllowed(decision)) return undefined;
  const origin =
    listener === undefined
      ? bind.frontend.origins?.ipAccess?.[0]
      : bind.provenance.ofPolicy({ policy: "ipAccess", phase: "gateway" }, { listener, ...NO_ROUTE });
  return refusal("ipAccess", "TG_AUTHORIZATION", decisions.tell(decision).text, origin);
}

const NO_ROUTE = { parents: [], route: undefined, backend: undefined };

import { OwnSockets } from "../../base/own-sockets.ts";
import { AddressRefused, type AdmittedAddress, Egress, NO_LOOKUP_RULES, type SocketAddress } from "../egress.ts";

/** The egress of a process that listens nowhere and whose targets come from its file: every address is admitted. */
export const ANYWHERE = new Egress({ provenance: "operator", lookupRules: NO_LOOKUP_RULES }, new OwnSockets());

/** An address that has passed the check. */
export function admitted(address: SocketAddress): AdmittedAddress {
  const found = ANYWHERE.admit(address);
  if (found instanceof AddressRefused) throw found;
  return found;
}

/** For servers whose clients run in the test's own process. */
export function unguarded(): OwnSockets {
  const own = new OwnSockets();
  own.guarded = false;
  return own;
}

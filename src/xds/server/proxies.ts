import type { HeldBack } from "../resources.ts";
import type { TypeUrl } from "./encoded-state.ts";

/** What the controller knows of one connected proxy. */
export interface ProxyStatus {
  /** `<namespace>/<name>` of its Gateway, or `GatewayClass/<name>` of the class whose Gateways share it. */
  readonly gateway: string;
  /** Of the pod. */
  readonly namespace: string;
  readonly pod: string;
  /** Address and port of its connection. */
  readonly peer: string;
  /** ISO 8601 */
  readonly connectedAt: string;
  /** Version of the state that it was sent last; empty: none yet. */
  readonly sent: string;
  /** Version of the state that it runs; empty: none yet. */
  readonly acknowledged: string;
  /** The same by type: versions of the last responses that it has acknowledged. */
  readonly acknowledgedTypes: Readonly<Record<TypeUrl, string>>;
  /** Why it rejected the last state that it was sent; null if it did not. */
  readonly rejection: Rejection | null;
  /** It runs the newest state of its Gateway. */
  readonly synchronized: boolean;
}

export interface Rejection {
  /** ISO 8601 */
  readonly at: string;
  /** The version that was rejected. */
  readonly version: string;
  readonly message: string;
  /** The Gateways for which it was rejected, while the others run it; empty: none of it is applied. */
  readonly heldBack: readonly HeldBack[];
}

import { size } from "../schema/fields.ts";
import type { ConfigOf } from "../schema/resolved.ts";

export const schema = size().describe(
  "Largest request body in bytes; a longer one gets 413, at once if `Content-Length` already shows it, otherwise as soon as more bytes have arrived. Bodies are not buffered for it. Messages of gRPC count with their framing; tunnels such as WebSocket are not limited. 0: unlimited, whatever an outer level says. `frontendPolicies.http.maxRequestBodySize` applies first, to all requests of a listener.",
);

/** Bytes; 0 = unlimited. */
export type MaxRequestBodySize = ConfigOf<typeof schema>;

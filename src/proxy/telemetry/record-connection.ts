/** The records of connections and sessions that are over, and of what never became a request, for the flight recorder. */
import type { ErrorCode, Reason } from "../../base/errors.ts";
import type { Origin } from "../../base/origin.ts";
import { errorNumber, reasonNumber } from "../../recorder/codes.ts";
import { type Kind, kindNumber } from "../../recorder/layout.ts";
import type { Place, Recorder } from "../../recorder/recorder.ts";

interface Ended {
  readonly kind: Exclude<Kind, "request">;
  readonly generation: number;
  /** `tcp`, `tls`, `udp`, or `http` for what was to become one. */
  readonly protocol: string;
  /** The TLS server name, or the authority of a tunnel; empty = none. */
  readonly host?: string;
  readonly endpoint?: string | undefined;
  readonly client: { readonly remoteAddress: string; readonly remotePort: number };
  readonly status?: number;
  readonly code?: ErrorCode | undefined;
  readonly reason: Reason;
  /** Of what ended it. */
  readonly origin?: Origin | undefined;
  readonly received: number;
  readonly sent: number;
  /** `performance.now()` ms; default: now. */
  readonly startedAt?: number;
}

export function recordConnection(ended: Ended, place: Place, recorder: Recorder): void {
  const now = performance.now();
  const { kind, generation, protocol, host = "", endpoint, client, status = 0, code, reason, origin } = ended;
  const fields = recorder.open(place, ended.startedAt ?? now, now);
  fields.kind = kindNumber(kind);
  fields.generation = generation;
  fields.status = status;
  fields.reason = reasonNumber(reason);
  if (code !== undefined) fields.code = errorNumber(code);
  if (origin !== undefined) fields.decider = recorder.decider({ origin });
  fields.received = ended.received;
  fields.sent = ended.sent;
  recorder.message("", protocol);
  if (endpoint !== undefined) recorder.endpoint(endpoint, false);
  recorder.client(client.remoteAddress, client.remotePort);
  recorder.texts(undefined, host, "");
  recorder.close(place, now);
}

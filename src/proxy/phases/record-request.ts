/** The record of a request that is over, for the flight recorder. Costs no allocation unless the request has failed. */
import { redactTarget } from "../../base/redaction.ts";
import { errorNumber, reasonNumber } from "../../recorder/codes.ts";
import { FLAGS, type SlotFields } from "../../recorder/layout.ts";
import type { Place, Recorder } from "../../recorder/recorder.ts";
import { isTraceparent, TRACE_ID_AT } from "../../telemetry/tracing/traceparent.ts";
import { policyOf } from "../compile/provenance.ts";
import type { Exchange } from "../exchange/exchange.ts";

/** An attempt beyond this number counts as this one: the field has a byte. */
const MAX_ATTEMPTS = 255;
/** What makes a path look like one with parameters or user names, whose values may be secret. */
const SUSPICIOUS = /[;%@+]/;

/** What is recorded of an exchange, and read again by those who choose among records or traces. */
export type Recorded = Readonly<
  Pick<
    Exchange,
    | "bind"
    | "call"
    | "downstream"
    | "grpc"
    | "request"
    | "requestId"
    | "requestSide"
    | "responseSide"
    | "result"
    | "selected"
    | "span"
    | "startedAt"
    | "traceparent"
  >
>;

/** Records an exchange that has ended. `place`: the most specific that it has reached. */
export function recordRequest(exchange: Recorded, place: Place, recorder: Recorder): void {
  const { bind, selected, call, downstream, responseSide, result, request, startedAt } = exchange;
  const fields = recorder.open(place, startedAt, result.endedAt);
  fields.generation = bind.generation;
  fields.status = result.status;
  if (result.reason !== "Upstream") fields.reason = reasonNumber(result.reason);
  recorder.message(request.method, request.version);
  fields.received = downstream.bodyBytes;
  fields.sent = responseSide.bytes;
  const { grpcStatus } = responseSide;
  if (exchange.grpc !== "no" && grpcStatus !== undefined) fields.grpcStatus = grpcStatus;
  if (selected.reachedBackend) fields.flags |= FLAGS.reachedBackend;
  if (downstream.connection.tls !== undefined) fields.flags |= FLAGS.tls;
  if (call !== undefined) {
    fields.attempts = Math.min(call.attempts, MAX_ATTEMPTS);
    if (call.startedAt > 0) fields.beforeCall = call.startedAt - startedAt;
    if (call.answeredAt > 0) fields.untilAnswer = call.answeredAt - call.startedAt;
    const { endpointName } = call;
    // Clients choose the endpoints of `dynamic` backends.
    if (endpointName !== undefined) recorder.endpoint(endpointName, selected.backend?.target.type === "dynamic");
  }
  const { decider } = result;
  if (result.code !== undefined) fields.code = errorNumber(result.code);
  if (result.code !== undefined || decider !== undefined) {
    const origin = bind.provenance.ofError(result.code, decider, selected, bind.frontend);
    const policy = policyOf(decider);
    if (origin !== undefined || policy !== undefined)
      fields.decider = recorder.decider({ policy: policy?.policy, phase: policy?.phase, rule: policy?.rule, origin });
  }
  const { span, traceparent } = exchange;
  if (span !== undefined) setTrace(fields, span.traceId, 0);
  else if (traceparent !== undefined && isTraceparent(traceparent)) setTrace(fields, traceparent, TRACE_ID_AT);
  recorder.client(downstream.connection.remoteAddress, downstream.connection.remotePort);
  recorder.texts(exchange.requestId, selected.host, shownPath(exchange));
  recorder.close(place, result.endedAt);
}

/** The path as it arrived, without its secrets. */
export function shownPath({ requestSide: { arrivedPath }, bind }: Pick<Recorded, "bind" | "requestSide">): string {
  return SUSPICIOUS.test(arrivedPath)
    ? redactTarget(arrivedPath, bind.policies.credentials.parametersOf(arrivedPath))
    : arrivedPath;
}

/** `at`: where the 32 hexadecimal digits of the trace id begin. */
function setTrace(fields: SlotFields, text: string, at: number): void {
  fields.trace0 = hexadecimal(text, at);
  fields.trace1 = hexadecimal(text, at + 8);
  fields.trace2 = hexadecimal(text, at + 16);
  fields.trace3 = hexadecimal(text, at + 24);
}

/** Eight digits as a number. */
function hexadecimal(text: string, at: number): number {
  let value = 0;
  for (let i = at; i < at + 8; i++) {
    const code = text.charCodeAt(i);
    // 0 to 9 are 0x30 to 0x39, a to f are 0x61 to 0x66.
    value = (value << 4) | (code < 0x3a ? code & 15 : (code & 15) + 9);
  }
  return value >>> 0;
}

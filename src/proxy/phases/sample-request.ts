/** Samples of requests as they arrived, by which changes of the configuration are judged. */
import { redactTarget } from "../../base/redaction.ts";
import { UNKNOWN_LENGTH } from "../../http/stream.ts";
import type { Recorder } from "../../recorder/recorder.ts";
import type { SampledField, SampledRequest } from "../../recorder/sample.ts";
import type { Sampler } from "../../recorder/sampler.ts";
import { redactFields } from "../../trace/redaction.ts";
import type { Exchange } from "../exchange/exchange.ts";
import { sensitiveNames } from "../variables/exchange-variables.ts";

type Arrived = Readonly<Pick<Exchange, "bind" | "downstream" | "requestSide" | "selected" | "services" | "startedAt">>;

const NOTHING_HIDDEN = { has: () => false };
/** Fields in which proxies name the client. */
const ADDRESS_FIELDS = new Set(["forwarded", "x-forwarded-for", "x-real-ip"]);
const VERSIONS = { "HTTP/1.0": "1.0", "HTTP/1.1": "1.1", "HTTP/2": "2" } as const;

/** Counts a request for its route, or for the listener if it has none, and samples it if it is its turn. */
export function sampleRequest(exchange: Arrived, recorder: Recorder): void {
  const { sampler } = recorder;
  if (sampler === undefined) return;
  const { bind, selected, startedAt } = exchange;
  const place = (selected.route ?? selected.listener ?? bind).series.placeIn(recorder);
  const { samples } = place.history;
  const weight = sampler.weightOf(samples, startedAt);
  if (weight > 0) sampler.write(samples, sampleOf(exchange, weight, sampler, recorder.clientAddress));
}

function sampleOf(exchange: Arrived, weight: number, sampler: Sampler, clientAddress: boolean): SampledRequest {
  const { bind, downstream, requestSide, startedAt } = exchange;
  const { connection, hasForwarded, requestLength, upgrade } = downstream;
  const { arrivedTarget, arrived } = requestSide;
  const parameters = bind.policies.credentials.parametersOf(arrivedTarget);
  const shown = redactFields(arrived.headers, NOTHING_HIDDEN, parameters);
  const hidden = sensitiveNames(exchange);
  const headers: SampledField[] = [];
  for (let i = 0; i < shown.length; i += 2) {
    const name = shown[i] ?? "";
    // The gateway has added it.
    if (!hasForwarded && name.startsWith("x-forwarded-")) continue;
    if (hidden.has(name) || (!clientAddress && ADDRESS_FIELDS.has(name)))
      headers.push({ name, digest: sampler.digestOf(name, arrived.headers[i + 1] ?? "") });
    else headers.push({ name, value: shown[i + 1] ?? "" });
  }
  return {
    time: new Date(performance.timeOrigin + startedAt).toISOString(),
    weight,
    bind: bind.key,
    scheme: arrived.scheme,
    version: VERSIONS[arrived.version],
    method: arrived.method,
    authority: arrived.authority,
    target: redactTarget(arrivedTarget, parameters),
    headers,
    ...(requestLength !== 0 && { contentLength: requestLength === UNKNOWN_LENGTH ? "unknown" : requestLength }),
    ...(upgrade !== "" && { upgrade }),
    ...(clientAddress && { source: { address: connection.remoteAddress, port: connection.remotePort } }),
    ...(connection.tls !== undefined && connection.tls.serverName !== "" && { serverName: connection.tls.serverName }),
  };
}

/** What a request became, as readers of traces ask for it. */
import type { Activation } from "../../cel/index.ts";
import type { PlaceLabels } from "../../recorder/recorder.ts";
import { policyOf } from "../compile/provenance.ts";
import { type Recorded, shownPath } from "./record-request.ts";

/**
 * The variables of a `where` for an exchange that has ended: those that the recorder has of a request, with the same values, so that a condition
 * chooses the same requests here and there. `place`: the most specific that it has reached.
 */
export function outcomeOf(exchange: Recorded, place: PlaceLabels): Activation {
  const { call, downstream, request, responseSide, result, selected, startedAt } = exchange;
  const { code, decider, endedAt, reason, status } = result;
  const policy = policyOf(decider)?.policy;
  return {
    request: {
      method: request.method,
      scheme: downstream.connection.tls === undefined ? "http" : "https",
      authority: selected.host,
      path: shownPath(exchange),
      search: "",
      version: request.version,
      headers: [],
      startTime: new Date(performance.timeOrigin + startedAt),
      endTime: new Date(performance.timeOrigin + endedAt),
    },
    response: { status, headers: [], grpcStatus: exchange.grpc === "no" ? undefined : responseSide.grpcStatus },
    backend: { name: known(place.backend) },
    record: {
      route: known(place.route) ?? "",
      listener: known(place.listener) ?? "",
      endpoint: call?.endpointName ?? "",
      error: code ?? "",
      reason,
      policy: policy ?? "",
      duration: endedAt - startedAt,
      attempts: call?.attempts ?? 0,
    },
  };
}

function known(label: string): string | undefined {
  return label === "unknown" ? undefined : label;
}

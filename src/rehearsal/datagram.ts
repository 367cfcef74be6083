/**
 * The first datagram of a client. Sessions of UDP are made of sockets, so this takes the decisions of `UdpServer` and `UdpSession` with
 * their own functions, without a session.
 */
import { ERRORS, type ErrorCode, GatewayError } from "../base/errors.ts";
import { formatHostPort } from "../base/listen-address.ts";
import type { Addresses } from "../net/addresses.ts";
import type { CompiledBind } from "../proxy/compile/compiled.ts";
import { callable, pick } from "../proxy/phases/select-backend.ts";
import type { Services } from "../proxy/services/services.ts";
import { routeOfConnection } from "../proxy/tcp/connection-trace.ts";
import { connectionVariables } from "../proxy/variables/connection-variables.ts";
import type { AccessRecord } from "../telemetry/access-record.ts";
import type { TraceEvent, TraceMessage } from "../trace/events.ts";

interface Datagram {
  /** As the access log has it at the end of the session. */
  readonly record: Partial<AccessRecord>;
  readonly events: readonly TraceEvent[];
}

export async function rehearseDatagram(from: Addresses, bind: CompiledBind, services: Services): Promise<Datagram> {
  const listener = bind.listeners.find("");
  const events: TraceEvent[] = [];
  const emit = (message: TraceMessage): number =>
    events.push({ eventStart: null, eventEnd: 0, severity: "info", message });
  const client = { source: formatHostPort(from.remoteAddress, from.remotePort) };
  let record: Partial<AccessRecord> = {
    ...client,
    gateway: listener?.gateway,
    listener: listener?.name,
    protocol: "udp",
  };
  const failed = (code: ErrorCode, detail = ""): Datagram => {
    const { message, reason } = ERRORS[code];
    return { record: { ...record, error: message + detail, code, reason }, events };
  };
  const variables = connectionVariables({ ...from, tls: undefined }, "", services);
  if (bind.network?.decide(variables) !== undefined) return failed("TG_AUTHORIZATION");
  const decision = await bind.networkAuthorizer?.ask(variables, () => {});
  if (decision?.allowed === false) return failed("TG_EXT_AUTHZ", `: ${decision.why}`);
  const route = listener?.tcpRoutes.find("");
  emit(routeOfConnection(route, listener?.tcpRoutes.routes ?? []));
  if (route === undefined) return failed("TG_ROUTE_NOT_FOUND");
  record = { ...record, route: route.label };
  try {
    const endpoint = callable(pick(route, services), "udp").balancer?.choose();
    if (endpoint === undefined) return failed("TG_NO_HEALTHY_BACKENDS");
    record = { ...record, endpoint: endpoint.pool.name };
    emit({ type: "backendCallStart", target: endpoint.pool.name });
    emit({ type: "backendCallResult", status: null, error: null });
    return { record, events };
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    return failed(error.code, error.cause instanceof Error ? `: ${error.cause.message}` : "");
  }
}

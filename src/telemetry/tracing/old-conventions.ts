import { recordFields } from "../access-record.ts";
import { type Conventions, outboundAttributes, requestAttributes } from "./conventions.ts";

/** The names of the access log, which resemble the HTTP conventions before they were stable. */
export const OLD: Conventions = {
  server(facts) {
    const { arrived, record, route } = facts;
    const { error, ...fields } = recordFields({ ...record, traceId: undefined, spanId: undefined });
    const { method, version } = record;
    return {
      name: route === undefined ? "unknown" : `${method} ${route}`,
      attributes: {
        ...fields,
        ...requestAttributes(facts),
        "url.scheme": arrived.scheme,
        "network.protocol.version": version?.slice("HTTP/".length),
      },
      error: record.error ?? serverError(record.status),
    };
  },

  client(facts) {
    const { request, target, subtype, status, grpcStatus, error } = facts;
    return {
      name: request === undefined ? subtype : `${request.method} ${target}`,
      attributes: {
        ...outboundAttributes(facts),
        "http.method": request?.method,
        "http.host": request === undefined ? target : request.authority,
        "http.path": request?.path,
        "http.status": status,
        "grpc.status": grpcStatus,
      },
      error: error ?? serverError(status),
    };
  },
};

function serverError(status: number | undefined): string | undefined {
  return status !== undefined && status >= 500 ? `status ${status}` : undefined;
}

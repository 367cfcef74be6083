/**
 * The stable semantic conventions of OpenTelemetry for HTTP and RPC (version 1.45, "HTTP spans" and "gRPC").
 * A field of the access log that they have no name for keeps its own.
 */
import { grpcStatusName, SERVER_FAILURES } from "../../base/grpc-codes.ts";
import { KNOWN_METHODS } from "../../base/http-methods.ts";
import { recordFields } from "../access-record.ts";
import type { Attributes } from "../otlp/entries.ts";
import {
  type CallFacts,
  type Conventions,
  outboundAttributes,
  requestAttributes,
  type ServerFacts,
} from "./conventions.ts";

/** A method, or a class of errors, that is none of those with names. */
const OTHER = "_OTHER";

export const STABLE: Conventions = {
  server(facts) {
    const { arrived, record, route, grpc } = facts;
    const { status, grpcStatus, error, path = "" } = record;
    const type = serverErrorType(facts);
    const query = path.indexOf("?");
    return {
      name: nameOf(arrived.method, route),
      attributes: {
        ...methodAttributes(arrived.method),
        "http.route": route,
        "http.response.status_code": status === 0 ? undefined : status,
        "error.type": type,
        "url.scheme": arrived.scheme,
        "url.path": query < 0 ? path : path.slice(0, query),
        "url.query": query < 0 ? undefined : path.slice(query + 1),
        ...addressAttributes("server", arrived.authority),
        "client.address": arrived.client.remoteAddress,
        "client.port": arrived.client.remotePort,
        "network.peer.address": arrived.client.rawAddress,
        "network.peer.port": arrived.client.rawPort,
        "network.protocol.version": record.version?.slice("HTTP/".length),
        "user_agent.original": arrived.userAgent,
        ...(grpc && grpcAttributes(path, grpcStatus)),
        ...ownFields(facts),
        ...requestAttributes(facts),
        // The status of the span has the text of errors. Refused requests are not errors of a server, and their spans have no status.
        "tracegate.error": type === undefined ? error : undefined,
      },
      error: type === undefined ? undefined : (error ?? ""),
    };
  },

  client(facts) {
    const { request, target, subtype, status, grpcStatus, error, connection } = facts;
    const type = clientErrorType(facts);
    const outcome = { "http.response.status_code": status, "error.type": type };
    const common = { ...outboundAttributes(facts), ...addressAttributes("server", target), ...outcome };
    const problem = type === undefined ? undefined : (error ?? "");
    if (request === undefined) return { name: subtype, attributes: common, error: problem };
    const { method, scheme, authority, path, grpc, retry } = request;
    return {
      name: nameOf(method, undefined),
      attributes: {
        ...methodAttributes(method),
        ...common,
        "url.full": `${scheme}://${authority}${path === "*" ? "" : path}`,
        "http.request.resend_count": retry === 0 ? undefined : retry,
        "network.peer.address": connection?.peer?.address,
        "network.peer.port": connection?.peer?.port,
        "network.protocol.version": connection?.version,
        ...(grpc && grpcAttributes(path, grpcStatus)),
      },
      error: problem,
    };
  },
};

function nameOf(method: string, route: string | undefined): string {
  const shown = KNOWN_METHODS.has(method) ? method : "HTTP";
  return route === undefined ? shown : `${shown} ${route}`;
}

function methodAttributes(method: string): Attributes {
  if (KNOWN_METHODS.has(method)) return { "http.request.method": method };
  return { "http.request.method": OTHER, "http.request.method_original": method };
}

/** The address and port in `host:port`, `[host]:port`, `host` or `unix:path`. */
function addressAttributes(of: "server", text: string): Attributes {
  if (text.startsWith("unix:")) return { [`${of}.address`]: text.slice("unix:".length) };
  const colon = text.lastIndexOf(":");
  const hasPort = colon > text.lastIndexOf("]");
  const host = hasPort ? text.slice(0, colon) : text;
  return {
    [`${of}.address`]: host.startsWith("[") ? host.slice(1, -1) : host,
    [`${of}.port`]: hasPort ? Number(text.slice(colon + 1)) : undefined,
  };
}

/** `path` is `/<package>.<Service>/<Method>`; a status without a name is its number. */
function grpcAttributes(path: string, status: number | undefined): Attributes {
  return {
    "rpc.system.name": "grpc",
    "rpc.method": /^\/([^/?]+\/[^/?]+)$/.exec(path)?.[1],
    "rpc.response.status_code": status === undefined ? undefined : grpcName(status),
  };
}

function grpcName(status: number): string {
  return grpcStatusName(status) ?? String(status);
}

/** What failed, if it was the server: the gateway or a backend. Undefined for responses with a status of 4xx, which blame the client. */
function serverErrorType({
  record: { status = 0, code, error, reason, grpcStatus },
  grpc,
}: ServerFacts): string | undefined {
  if (grpc && grpcStatus !== undefined && SERVER_FAILURES.has(grpcStatus)) return code ?? grpcName(grpcStatus);
  if (status >= 500) return code ?? String(status);
  if (status === 0 || (status < 400 && error !== undefined)) return code ?? reason ?? OTHER;
  return undefined;
}

/** To a client, a status of 4xx is an error too, and so is every status of gRPC but OK. */
function clientErrorType({ status, error, code, grpcStatus, request }: CallFacts): string | undefined {
  if (request?.grpc === true && grpcStatus !== undefined && grpcStatus !== 0) return grpcName(grpcStatus);
  if (status !== undefined && status >= 400) return String(status);
  return error === undefined ? undefined : (code ?? OTHER);
}

/** The fields without a name in the conventions. */
function ownFields({ record }: ServerFacts): Attributes {
  const {
    error: _error,
    "trace.id": _trace,
    "span.id": _span,
    "src.addr": _client,
    "http.method": _method,
    "http.host": _host,
    "http.path": _path,
    "http.version": _version,
    "http.status": _status,
    "grpc.status": _grpc,
    protocol: _protocol,
    ...own
  } = recordFields(record);
  return own;
}

import type { Transport } from "../../net/transport.ts";
import type { HttpConnection, HttpHost, NetworkMetadata, StreamAcceptor } from "../stream.ts";
import { ServerConnection } from "./connection.ts";

/**
 * Serves HTTP on a client's connection: the caller gives the transport to the returned handler. This is the one place that
 * knows which version a connection speaks. HTTP/1.1 is all there is now, so ALPN offers nothing else. Another version
 * implements HttpConnection, calls `streams.open` for each of its streams, and is chosen here by `transport.tls` (ALPN) or by
 * the first bytes; hosts and acceptors stay as they are.
 *
 * `streams` makes what handles each request; `metadata`: what the network authorization has returned about the connection.
 */
export function serveHttp(
  transport: Transport,
  host: HttpHost,
  streams: StreamAcceptor,
  metadata: NetworkMetadata | undefined,
): HttpConnection {
  return new ServerConnection(transport, host, streams, metadata);
}

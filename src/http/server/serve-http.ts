import type { Transport } from "../../net/transport.ts";
import type { HttpConnection, HttpHost, NetworkMetadata, StreamAcceptor } from "../stream.ts";
import { ServerConnection } from "./connection.ts";
import { Http2ServerConnection } from "./http2-connection.ts";

/**
 * Serves HTTP on a client's connection: the caller gives the transport to the returned handler. This is the only place that
 * knows which version a connection speaks. Inside TLS, the handshake has negotiated it (ALPN, RFC 7301). In plaintext it is
 * HTTP/1.1 unless a client begins with the preface of HTTP/2 (prior knowledge, RFC 9113 3.3): then `onVersionChange` gives the host
 * another connection in place of the returned one.
 *
 * `streams` opens a stream for each request. `metadata`: what the network authorization has returned about the connection.
 */
export function serveHttp(
  transport: Transport,
  host: HttpHost,
  streams: StreamAcceptor,
  metadata: NetworkMetadata | undefined,
): HttpConnection {
  if (transport.tls === undefined) return new ServerConnection(transport, host, streams, metadata, serveHttp2);
  if (transport.tls.protocol === "h2") return serveHttp2(transport, host, streams, metadata);
  return new ServerConnection(transport, host, streams, metadata);
}

function serveHttp2(
  transport: Transport,
  host: HttpHost,
  streams: StreamAcceptor,
  metadata: NetworkMetadata | undefined,
): HttpConnection {
  return new Http2ServerConnection(transport, host, streams, metadata);
}

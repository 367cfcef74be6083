import type { SourceParts } from "../cel/index.ts";
import type { Addresses } from "./addresses.ts";
import type { TlsSession } from "./transport.ts";

/** A connection's client as expressions see it (`source`, reference 4.7). Its certificate is taken apart when it is read. */
export function sourceOf(from: Addresses & { readonly tls: TlsSession | undefined }): SourceParts {
  const { remoteAddress: address, remotePort: port, rawAddress, rawPort, connectHead: connectHeaders, tls } = from;
  const client = tls?.client;
  if (client === undefined) return { address, port, rawAddress, rawPort, connectHeaders };
  return {
    address,
    port,
    rawAddress,
    rawPort,
    connectHeaders,
    get identity() {
      return client.identity;
    },
    get spiffeId() {
      return client.spiffeId;
    },
    get subjectAltNames() {
      return client.subjectAltNames;
    },
    get issuer() {
      return client.issuer;
    },
    get subject() {
      return client.subject;
    },
    get subjectCn() {
      return client.subjectCn;
    },
    get certificate() {
      return client.pem;
    },
  };
}

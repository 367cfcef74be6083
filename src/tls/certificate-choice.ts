import { X509Certificate } from "node:crypto";
import type { CertificateAndKey } from "./tls-settings.ts";

/** The certificate chain (the server's certificate first) and key of a server, PEM; or one of each for each type of key. */
export interface ServerIdentity {
  readonly cert: string | string[];
  readonly key: string | string[];
  /** OCSP response, DER in base64. */
  readonly ocspStaple?: string | undefined;
}

interface ParsedPair {
  readonly pair: CertificateAndKey;
  readonly certificate: X509Certificate;
}

/**
 * The certificates of a listener that has several. The client's server name (SNI) selects the certificates that are valid for it, and
 * OpenSSL chooses among these by the types of keys that the client supports; it accepts one certificate of each type.
 */
export class CertificateChoice {
  readonly #known: readonly ParsedPair[];
  /** Identities by the indexes of their certificates. */
  readonly #identities = new Map<string, ServerIdentity>();

  /** Certificates and keys that `checkTlsServer` has found usable. */
  constructor(pairs: readonly CertificateAndKey[]) {
    this.#known = pairs.map((pair) => ({ pair, certificate: new X509Certificate(pair.cert) }));
  }

  /** Returns the same object for the same certificates. Without a valid certificate for the name: the first one of each type. */
  for(serverName: string): ServerIdentity {
    const valid = this.#known.filter(
      ({ certificate }) => serverName !== "" && certificate.checkHost(serverName) !== undefined,
    );
    const chosen = firstOfEachType(valid.length > 0 ? valid : this.#known);
    const key = chosen.map((each) => this.#known.indexOf(each)).join(" ");
    let identity = this.#identities.get(key);
    if (identity === undefined) {
      // Node asks for the response before OpenSSL has chosen among several certificates.
      const ocspStaple = chosen.length === 1 ? chosen[0]?.pair.ocspStaple : undefined;
      identity = { cert: chosen.map(({ pair }) => pair.cert), key: chosen.map(({ pair }) => pair.key), ocspStaple };
      this.#identities.set(key, identity);
    }
    return identity;
  }
}

function firstOfEachType(list: readonly ParsedPair[]): readonly ParsedPair[] {
  const types = list.map(({ certificate }) => certificate.publicKey.asymmetricKeyType);
  return list.filter((_known, i) => types.indexOf(types[i]) === i);
}

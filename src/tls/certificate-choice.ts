import { X509Certificate } from "node:crypto";
import type { CertificateAndKey } from "./tls-settings.ts";

/** What a server shows its clients: the chain, its own certificate first, and the key, both PEM; or one of each for each type of key. */
export interface ServerIdentity {
  readonly cert: string | string[];
  readonly key: string | string[];
  /** OCSP response, DER in base64. */
  readonly ocspStaple?: string | undefined;
}

interface Known {
  readonly pair: CertificateAndKey;
  readonly certificate: X509Certificate;
}

/**
 * The certificates of a listener that has several. Clients choose by the name that they ask for (SNI), and among certificates
 * for it by the types of keys that they support, which OpenSSL compares in the handshake: it takes one certificate of each type.
 */
export class CertificateChoice {
  readonly #known: readonly Known[];
  /** By the indexes of their certificates. */
  readonly #identities = new Map<string, ServerIdentity>();

  /** Certificates and keys that `checkTlsServer` has found usable. */
  constructor(pairs: readonly CertificateAndKey[]) {
    this.#known = pairs.map((pair) => ({ pair, certificate: new X509Certificate(pair.cert) }));
  }

  /** The same object for the same certificates. A name that none is valid for gets the same as no name: the first of each type. */
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

function firstOfEachType(list: readonly Known[]): readonly Known[] {
  const types = list.map(({ certificate }) => certificate.publicKey.asymmetricKeyType);
  return list.filter((_known, i) => types.indexOf(types[i]) === i);
}

/** Settings of TLS on both sides, with the files already read (PEM text). Times are milliseconds. */

export type KeyExchangeGroup = "X25519" | "P-256" | "P-384" | "X25519_MLKEM768";

/** Server-side TLS with the files already read (PEM text). */
export interface TlsServer {
  readonly cert: string;
  readonly key: string;
  readonly ocspStaple?: string | undefined;
  /**
   * Further certificates. A client gets one that is valid for its server name, of a key type that it supports; if several are, the first
   * in the order of `cert`, then these.
   */
  readonly otherCertificates?: readonly CertificateAndKey[] | undefined;
  /** One or more certificates of CAs. */
  readonly clientCa?: string | undefined;
  /**
   * Only with `clientCa`. `optional`: clients are asked for a certificate, but also served without one or with an invalid one; only
   * a verified certificate is an identity (Gateway API, `AllowInsecureFallback`). Absent: `required`.
   */
  readonly clientCertificates?: "required" | "optional" | undefined;
  readonly minVersion?: "TLSv1.2" | "TLSv1.3" | undefined;
  readonly maxVersion?: "TLSv1.2" | "TLSv1.3" | undefined;
  readonly cipherSuites?: readonly string[] | undefined;
  /** In order of preference. Absent: the runtime's. */
  readonly keyExchangeGroups?: readonly KeyExchangeGroup[] | undefined;
  /** What an HTTPS listener offers by ALPN (RFC 7301), in order of preference. Absent: `h2`, `http/1.1`. */
  readonly alpn?: readonly ("h2" | "http/1.1")[] | undefined;
  /** Present: `cert` and `key` are empty, because the certificate for this name has not been issued yet. */
  readonly pending?: PendingCertificate | undefined;
  /** Present: `cert` and `key` are those of a CA, which signs a certificate for each server name (SNI). */
  readonly dynamicCa?: LeafCaching | undefined;
}

/** PEM. */
export interface CertificateAndKey {
  /** The server's certificate first, then the chain. */
  readonly cert: string;
  readonly key: string;
  /** OCSP response about the certificate, DER in base64, which clients that ask for it get until it expires. */
  readonly ocspStaple?: string | undefined;
}

/** What clients get until the certificate for a name has been issued. */
export interface PendingCertificate {
  readonly name: string;
  /** `refuse`: the handshake fails; `selfSigned`: a certificate that is signed with its own key. */
  readonly until: "refuse" | "selfSigned";
}

/** How long a listener keeps the certificates that its CA has signed, in each worker. */
export interface LeafCaching {
  readonly ttl: number;
  /** Names, at least 1. */
  readonly capacity: number;
}

/** `backendTLS` (docs/policies/backend-tls.md), with the files already read (PEM text). */
export interface BackendTls {
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
  readonly root?: string | undefined;
  readonly hostname?: string | undefined;
  readonly insecure: boolean;
  readonly insecureHost: boolean;
  /** Absent: the version of HTTP that is spoken. */
  readonly alpn?: readonly string[] | undefined;
  readonly subjectAltNames?: readonly string[] | undefined;
  /** In order of preference. Absent: the runtime's. */
  readonly keyExchangeGroups?: readonly KeyExchangeGroup[] | undefined;
}

/** What the configuration says about certificates that an ACME server (RFC 8555) issues. Times are milliseconds. */

/** How the gateway proves that it serves a name (RFC 8555 8, RFC 8737). */
export type ChallengeType = "http-01" | "tls-alpn-01" | "dns-01";

/** An account at an ACME server, and how its orders are fulfilled. */
export interface AcmeSettings {
  /** URL of the server's directory (RFC 8555 7.1.1). */
  readonly directory: string;
  /** The server may write to it. */
  readonly email?: string;
  readonly challenge: ChallengeType;
  /** Absolute path of the folder for keys, certificates and their state, which processes may share. */
  readonly storage: string;
  /** CAs of the directory's own certificate, PEM. Absent: those of the runtime. */
  readonly root?: string;
  /** External account binding (RFC 8555 7.3.4). */
  readonly externalAccount?: { readonly keyId: string; readonly hmacKey: string };
  /** Only with `dns-01`. */
  readonly dns?: DnsSettings;
}

/** Who writes TXT records, and how long they take to be visible everywhere. */
interface DnsSettings {
  readonly hook: DnsHook;
  readonly propagation: number;
}

/** A program with its first arguments, or a server. */
export type DnsHook =
  | { readonly command: readonly string[] }
  | { readonly url: string; readonly authorization?: string; readonly root?: string };

/** A certificate that the gateway orders and renews. */
export interface ManagedCertificate {
  /** Lower-case DNS name, perhaps with `*.` in front. */
  readonly name: string;
  readonly settings: AcmeSettings;
}

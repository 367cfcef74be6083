/** The answer of `/certificates`. Times are ISO 8601. */

/** The certificates of all listeners; that which expires first comes first, after those that are missing. */
export interface CertificatesAnswer {
  readonly certificates: readonly CertificateView[];
}

/** A certificate, and the listeners that serve it. */
export interface CertificateView {
  /** DNS names and addresses that it is for; of one that is pending, the name that it will be for. */
  readonly names: readonly string[];
  /** Keys of listeners. */
  readonly listeners: readonly string[];
  /** `acme`: the gateway orders and renews it; `static`: the configuration brings it; `dynamicCa`: it signs others. */
  readonly source: "acme" | "static" | "dynamicCa";
  /** Organization and common name of the CA that signed it; null until the certificate has been issued. */
  readonly issuer: string | null;
  readonly validFrom: string | null;
  readonly expires: string | null;
  /** `pending`: not issued yet; `early`: not valid yet. */
  readonly state: "valid" | "early" | "expired" | "pending";
  /** While it is pending: what clients get. */
  readonly untilIssued?: "refuse" | "selfSigned";
  /** Of `acme`: what the gateway does next, and when; without a time it does it now. Null: the gateway does nothing about it. */
  readonly next: { readonly step: "order" | "retry" | "renew" | "wait"; readonly at: string | null } | null;
  /** Why the last order failed; null: it did not, or there was none. */
  readonly lastError: { readonly at: string; readonly message: string; readonly count: number } | null;
}

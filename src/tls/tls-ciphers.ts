import type { KeyExchangeGroup } from "./tls-settings.ts";

/** TLS 1.3 suites have the same names in OpenSSL as in RFC 8446 B.4; `TLS13_` is the reference's prefix (1.6). */
const TLS13 = ["TLS_AES_256_GCM_SHA384", "TLS_AES_128_GCM_SHA256", "TLS_CHACHA20_POLY1305_SHA256"] as const;

/** Names of cipher suites as configurations write them, to OpenSSL's: `ECDHE-RSA-AES128-GCM-SHA256`. */
const OPENSSL: ReadonlyMap<string, string> = new Map([
  ...TLS13.flatMap((name): [string, string][] => [
    [name, name],
    [name.replace("TLS_", "TLS13_"), name],
  ]),
  ...["ECDSA", "RSA"].flatMap((key) =>
    ["AES_256_GCM_SHA384", "AES_128_GCM_SHA256", "CHACHA20_POLY1305_SHA256"].flatMap((cipher): [string, string][] => {
      const short = cipher
        .replace(/^AES_(\d+)/, "AES$1")
        .replace("POLY1305_SHA256", "POLY1305")
        .replaceAll("_", "-");
      const openssl = `ECDHE-${key}-${short}`;
      return [
        [`TLS_ECDHE_${key}_WITH_${cipher}`, openssl],
        [openssl, openssl],
      ];
    }),
  ),
]);

/** The names that a configuration may use. */
export const CIPHER_SUITES: readonly string[] = [...OPENSSL.keys()];

/**
 * OpenSSL's name of a suite. Undefined for unknown ones, and for those without forward secrecy or AEAD, which RFC 9325 4.2
 * says not to offer.
 */
export function opensslCipher(name: string): string | undefined {
  return OPENSSL.get(name);
}

/** Whether a suite, by a name of `CIPHER_SUITES`, is one of TLS 1.3. */
export function isTls13Suite(name: string): boolean {
  return opensslCipher(name)?.startsWith("TLS_") === true;
}

const FIRST = "TLS_AES_128_GCM_SHA256";

/**
 * The runtime's suites with AES-128 before AES-256 in TLS 1.3 too, as for TLS 1.2, and as in Go and BoringSSL. Both key lengths are
 * secure; SHA-256, which comes with AES-128, takes half the time of SHA-384 on processors with instructions for it.
 */
export function defaultCiphers(runtime: string): string {
  const suites = runtime.split(":");
  return suites.includes(FIRST) ? [FIRST, ...suites.filter((each) => each !== FIRST)].join(":") : runtime;
}

/** OpenSSL's names of the key exchanges that can be configured (docs/configuration.md#tlsserver). */
const GROUPS: Readonly<Record<KeyExchangeGroup, string>> = {
  X25519: "X25519",
  "P-256": "prime256v1",
  "P-384": "secp384r1",
  X25519_MLKEM768: "X25519MLKEM768",
};

/** Key exchanges as OpenSSL takes them, in order of preference. */
export function opensslGroups(groups: readonly KeyExchangeGroup[]): string {
  return groups.map((name) => GROUPS[name]).join(":");
}

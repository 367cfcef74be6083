/**
 * Checks the TLS settings of a listener when the configuration loads, so that a certificate that cannot be used is an error
 * with a field name instead of a failed handshake for every client. Called by the configuration (main thread) only; workers
 * trust what has passed here.
 */
import { createHash, createPrivateKey, type KeyObject, X509Certificate } from "node:crypto";
import { codeOf, messageOf } from "../base/errors.ts";
import { nodeTls } from "../base/lazy-node.ts";
import type { ServerIdentity } from "./certificate-choice.ts";
import { certificatesIn, certificatesProblem, readCertificate } from "./certificate-list.ts";
import { CIPHER_SUITES, isTls13Suite, opensslCipher } from "./tls-ciphers.ts";
import type { CertificateAndKey, TlsServer } from "./tls-settings.ts";
import { serverContext } from "./tls-terminator.ts";
import { issuerProblem, readIssuer } from "./x509/issuer.ts";
import { mintLeaf } from "./x509/leaf.ts";
import { type OcspStaple, readOcspStaple } from "./x509/ocsp.ts";

/** What is wrong with a server's TLS, and in which field; `suite` is an index into `cipherSuites`. */
export interface TlsProblem {
  readonly field: "cert" | "key" | "ocspStaple" | "clientCa" | "minVersion" | "cipherSuites" | undefined;
  readonly suite?: number;
  /** The field is one of this entry of `otherCertificates`. */
  readonly other?: number;
  readonly message: string;
}

/** Clients reject certificates outside of their validity period; connections can be accepted anyway. */
interface TlsExpiry extends TlsProblem {
  /** `digestOfPem` of the certificate; undefined = something else has expired. */
  readonly certificate?: string;
  /** Not expired: the certificate is not valid yet. */
  readonly early?: true;
}

/** What has expired of a listener's TLS that `checkTlsServer` finds usable; `now` in milliseconds. */
export function findExpired(tls: TlsServer, now: number): readonly TlsExpiry[] {
  return findInvalid(tls, now).filter(({ early }) => early !== true);
}

/** As `findExpired`, with the certificates that are not valid yet. */
export function findInvalid(tls: TlsServer, now: number): readonly TlsExpiry[] {
  if (tls.dynamicCa !== undefined || tls.pending !== undefined) return [];
  const pairs: readonly CertificateAndKey[] = [tls, ...(tls.otherCertificates ?? [])];
  return pairs.flatMap(({ cert, ocspStaple }, i) => {
    const certificate = new X509Certificate(cert);
    const place = i === 0 ? {} : { other: i - 1 };
    const invalid: TlsExpiry[] = [];
    if (certificate.validToDate.getTime() <= now)
      invalid.push({
        ...place,
        field: "cert",
        message: `the certificate expired at ${certificate.validToDate.toISOString()}, clients will reject it; renew it`,
        certificate: digestOfPem(cert),
      });
    if (certificate.validFromDate.getTime() > now)
      invalid.push({
        ...place,
        field: "cert",
        message: `the certificate is valid from ${certificate.validFromDate.toISOString()}, clients will reject it until then; check this machine's clock`,
        certificate: digestOfPem(cert),
        early: true,
      });
    const expires = ocspStaple === undefined ? now + 1 : stapleOf(ocspStaple, certificate).expires;
    if (expires <= now)
      invalid.push({
        ...place,
        field: "ocspStaple",
        message: `the OCSP response expired at ${new Date(expires).toISOString()} and is not sent; fetch it again`,
      });
    return invalid;
  });
}

/** Tells certificate files apart. */
export function digestOfPem(cert: string): string {
  return createHash("sha256").update(cert).digest("base64");
}

function stapleOf(base64: string, certificate: X509Certificate): OcspStaple {
  return readOcspStaple(Buffer.from(base64, "base64"), certificate);
}

function stapleProblem({ ocspStaple }: CertificateAndKey, certificate: X509Certificate): TlsProblem | undefined {
  if (ocspStaple === undefined) return undefined;
  try {
    stapleOf(ocspStaple, certificate);
    return undefined;
  } catch (error) {
    return { field: "ocspStaple", message: `the OCSP response cannot be used: ${messageOf(error)}` };
  }
}

/**
 * Finds problems that would only show at the first handshake, while the configuration loads. `undefined` = connections can be
 * accepted.
 */
export function checkTlsServer(tls: TlsServer): TlsProblem | undefined {
  const suite = tls.cipherSuites?.findIndex((name) => opensslCipher(name) === undefined) ?? -1;
  if (suite !== -1) {
    const known = CIPHER_SUITES.join(", ");
    return {
      field: "cipherSuites",
      suite,
      message: `not a cipher suite that can be offered; expected one of ${known}`,
    };
  }
  if (tls.minVersion === "TLSv1.3" && tls.maxVersion === "TLSv1.2")
    return { field: "minVersion", message: "minTLSVersion is above maxTLSVersion; no version would be left" };
  const unsuitable = suitesProblem(tls);
  if (unsuitable !== undefined) return unsuitable;
  const mismatch = pairProblem(tls);
  if (mismatch !== undefined) return mismatch;
  const certificate = readCertificate(tls.cert);
  const key = readKey(tls.key);
  if (certificate === undefined || key === undefined) return undefined;
  const unusable = stapleProblem(tls, certificate);
  if (unusable !== undefined) return unusable;
  for (const [other, pair] of (tls.otherCertificates ?? []).entries()) {
    const leaf = readCertificate(pair.cert);
    const problem = pairProblem(pair) ?? contextProblem(tls, pair) ?? (leaf && stapleProblem(pair, leaf));
    if (problem !== undefined) return { ...problem, other };
  }
  const untrusted = tls.clientCa === undefined ? undefined : certificatesProblem(tls.clientCa);
  if (untrusted !== undefined) return { field: "clientCa", message: `${untrusted}; expected the client CA in PEM` };
  const { dynamicCa } = tls;
  const problem = dynamicCa && (issuerProblem(certificate, key, Date.now()) ?? leafProblem(tls));
  if (problem !== undefined) return problem;
  return contextProblem(
    tls,
    dynamicCa === undefined ? tls : mintLeaf(readIssuer(tls.cert, tls.key), PROBE, Date.now()),
  );
}

/** Without a suite for the only version, OpenSSL would offer its own suites of TLS 1.3, or reject every client of TLS 1.2. */
function suitesProblem({ cipherSuites, minVersion, maxVersion }: TlsServer): TlsProblem | undefined {
  if (cipherSuites === undefined) return undefined;
  const modern = cipherSuites.filter(isTls13Suite).length;
  const none = (version: string, field: string): TlsProblem => ({
    field: "cipherSuites",
    message: `has no suite of TLS ${version}, the only version that ${field} leaves`,
  });
  if (minVersion === "TLSv1.3" && modern === 0) return none("1.3", "minTLSVersion");
  if (maxVersion === "TLSv1.2" && modern === cipherSuites.length) return none("1.2", "maxTLSVersion");
  return undefined;
}

const SHORT_KEY = "key is too short; expected RSA of at least 2048 bits, or ECDSA";
/** What codes of OpenSSL mean for a certificate that is too weak; `CA`: a later one of the chain. */
const WEAK: Readonly<Record<string, string>> = {
  ERR_SSL_EE_KEY_TOO_SMALL: `the certificate's ${SHORT_KEY}`,
  ERR_SSL_CA_KEY_TOO_SMALL: `a CA certificate's ${SHORT_KEY}`,
  ERR_SSL_CA_MD_TOO_WEAK: "a certificate is signed with a hash that is too weak, such as SHA-1; expected SHA-256",
};

/** Why OpenSSL rejects a certificate or the other settings. */
function contextProblem(tls: TlsServer, identity: ServerIdentity): TlsProblem | undefined {
  try {
    nodeTls().createSecureContext(serverContext(tls, identity));
    return undefined;
  } catch (error) {
    const weak = WEAK[codeOf(error) ?? ""];
    return weak === undefined
      ? { field: undefined, message: `cannot be used: ${messageOf(error)}` }
      : { field: "cert", message: weak };
  }
}

function pairProblem({ cert, key }: CertificateAndKey): TlsProblem | undefined {
  const broken = certificatesProblem(cert);
  if (broken !== undefined)
    return { field: "cert", message: `${broken}; expected PEM, the server's certificate first` };
  const secret = readKey(key);
  if (secret === undefined)
    return { field: "key", message: "the file has no private key; expected PEM without a passphrase" };
  const [first, ...others] = certificatesIn(cert);
  if (first?.checkPrivateKey(secret) === true) return undefined;
  const later = others.some((other) => other?.checkPrivateKey(secret));
  const message = later
    ? "the private key belongs to a later certificate of cert; put that certificate first, then those of its CAs"
    : "the private key does not belong to the certificate of cert";
  return { field: "key", message };
}

/**
 * Suites of TLS 1.2 name the kind of the certificate's key (RFC 5246 A.5), and generated certificates have ECDSA keys. TLS 1.3
 * suites do not name one (RFC 8446 B.4), so only listeners limited to 1.2 can end up without a usable suite.
 */
function leafProblem({ maxVersion, cipherSuites }: TlsServer): TlsProblem | undefined {
  if (maxVersion !== "TLSv1.2" || cipherSuites === undefined) return undefined;
  if (cipherSuites.some((name) => opensslCipher(name)?.includes("ECDSA"))) return undefined;
  return {
    field: "cipherSuites",
    message:
      "none of these fits the certificates that are made, which have ECDSA keys; add TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
  };
}

/** A certificate for this name is signed as a trial and never sent; `.invalid` resolves nowhere (RFC 2606 2). */
const PROBE = "host.invalid";

/** Undefined when `pem` has no private key or one with a passphrase. */
function readKey(pem: string): KeyObject | undefined {
  try {
    return createPrivateKey(pem);
  } catch {
    return undefined;
  }
}

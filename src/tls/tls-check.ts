import { createPrivateKey, type KeyObject, X509Certificate } from "node:crypto";
import { messageOf } from "../base/errors.ts";
import { nodeTls } from "../base/lazy-node.ts";
import { CIPHER_SUITES, opensslCipher } from "./tls-ciphers.ts";
import type { TlsServer } from "./tls-settings.ts";
import { serverContext } from "./tls-terminator.ts";
import { issuerProblem, readIssuer } from "./x509/issuer.ts";
import { mintLeaf } from "./x509/leaf.ts";

/** What is wrong with a server's TLS, and in which field; `suite` is an index into `cipherSuites`. */
export interface TlsProblem {
  readonly field: "cert" | "key" | "clientCa" | "minVersion" | "cipherSuites" | undefined;
  readonly suite?: number;
  readonly message: string;
}

/**
 * Finds what would fail at the first handshake, while the configuration loads: a listener whose certificate cannot be used would
 * otherwise be found out by its clients. `undefined` = connections can be accepted.
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
  const certificate = readCertificate(tls.cert);
  if (certificate === undefined)
    return { field: "cert", message: "the file has no certificate; expected PEM, the server's certificate first" };
  const key = readKey(tls.key);
  if (key === undefined)
    return { field: "key", message: "the file has no private key; expected PEM without a passphrase" };
  if (!certificate.checkPrivateKey(key))
    return { field: "key", message: "the private key does not belong to the certificate of cert" };
  if (tls.clientCa !== undefined && readCertificate(tls.clientCa) === undefined)
    return { field: "clientCa", message: "the file has no certificate; expected the client CA in PEM" };
  const { dynamicCa } = tls;
  const problem = dynamicCa && (issuerProblem(certificate, key, Date.now()) ?? leafProblem(tls));
  if (problem !== undefined) return problem;
  try {
    const identity = dynamicCa === undefined ? tls : mintLeaf(readIssuer(tls.cert, tls.key), PROBE, Date.now());
    nodeTls().createSecureContext(serverContext(tls, identity));
    return undefined;
  } catch (error) {
    return { field: undefined, message: `cannot be used: ${messageOf(error)}` };
  }
}

/** Up to TLS 1.2 a suite names the kind of the certificate's key, which nobody but the gateway chooses here. */
function leafProblem({ maxVersion, cipherSuites }: TlsServer): TlsProblem | undefined {
  if (maxVersion !== "TLSv1.2" || cipherSuites === undefined) return undefined;
  if (cipherSuites.some((name) => opensslCipher(name)?.includes("ECDSA"))) return undefined;
  return {
    field: "cipherSuites",
    message:
      "none of these fits the certificates that are made, which have ECDSA keys; add TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
  };
}

/** Signed to see that it can be: no client gets it. */
const PROBE = "host.invalid";

function readCertificate(pem: string): X509Certificate | undefined {
  try {
    return new X509Certificate(pem);
  } catch {
    return undefined;
  }
}

function readKey(pem: string): KeyObject | undefined {
  try {
    return createPrivateKey(pem);
  } catch {
    return undefined;
  }
}

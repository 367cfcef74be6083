import type { X509Certificate } from "node:crypto";
import type { PeerCertificate } from "../net/transport.ts";

/** The parts of a Kubernetes workload's SPIFFE ID: `spiffe://<trust domain>/ns/<namespace>/sa/<service account>`. */
interface WorkloadIdentity {
  readonly trustDomain: string;
  readonly namespace: string;
  readonly serviceAccount: string;
}

/**
 * A client's certificate that was verified in the handshake. Its fields are parsed when they are read: most configurations
 * read none of them.
 */
export class ClientCertificate implements PeerCertificate {
  readonly #certificate: X509Certificate;
  #names: readonly string[] | undefined;

  constructor(certificate: X509Certificate) {
    this.#certificate = certificate;
  }

  /** Its parts in the order of the certificate: `O=Example, CN=client`. */
  get subject(): string {
    return oneLine(this.#certificate.subject);
  }

  /** The last CN, which is the most specific one (RFC 4514 2.1); undefined if the subject has no CN. */
  get subjectCn(): string | undefined {
    const lines = this.#certificate.subject.split("\n");
    return lines.findLast((line) => line.startsWith("CN="))?.slice("CN=".length);
  }

  get issuer(): string {
    return oneLine(this.#certificate.issuer);
  }

  /** Names without their kinds: `client.example`, `spiffe://…`, `192.0.2.1`. */
  get subjectAltNames(): readonly string[] {
    this.#names ??= altNames(this.#certificate.subjectAltName ?? "");
    return this.#names;
  }

  /** The first URI name with the scheme `spiffe`; a valid SVID has exactly one (X509-SVID 2). */
  get spiffeId(): string | undefined {
    return this.subjectAltNames.find((name) => name.startsWith("spiffe://"));
  }

  /** Undefined unless the SPIFFE ID has the form that Kubernetes workloads get. */
  get identity(): WorkloadIdentity | undefined {
    const parts = /^spiffe:\/\/([^/]+)\/ns\/([^/]+)\/sa\/([^/]+)$/.exec(this.spiffeId ?? "");
    const [, trustDomain, namespace, serviceAccount] = parts ?? [];
    if (trustDomain === undefined || namespace === undefined || serviceAccount === undefined) return undefined;
    return { trustDomain, namespace, serviceAccount };
  }

  /** PEM. */
  get pem(): string {
    return this.#certificate.toString();
  }
}

/** Node writes one attribute per line. */
function oneLine(name: string): string {
  return name.trimEnd().replaceAll("\n", ", ");
}

/**
 * Names of a certificate, of all kinds or of one. Node writes `DNS:a, URI:b`, with names that contain a comma or a quote as JSON
 * strings.
 */
export function altNames(text: string, kind?: "DNS" | "URI"): string[] {
  return [...text.matchAll(/(?:^|, )([A-Za-z ]+):("(?:[^"\\]|\\.)*"|[^,]*)/g)]
    .filter(([, each]) => kind === undefined || each === kind)
    .map(([, , value = ""]) => (value.startsWith('"') ? String(JSON.parse(value)) : value));
}

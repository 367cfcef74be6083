/** Certificates of Secrets and ConfigMaps. Queries, so that each is parsed once and not for everything that refers to it. */
import { objectKey } from "../../../base/object-key.ts";
import { refOf } from "../../../kube/keys.ts";
import { GATEWAY_GROUP, type Secret } from "../../../kube/objects.ts";
import { readCertificate } from "../../../tls/certificate-list.ts";
import { checkTlsServer, findExpired, type TlsProblem } from "../../../tls/tls-check.ts";
import type { CertificateAndKey } from "../../../tls/tls-settings.ts";
import { defineQuery, type Read } from "../../graph/graph.ts";
import { isGranted } from "../model/grants.ts";

/** Or why it cannot be used, without anything secret. `problem`: what is wrong although there is something to use. */
export type Loaded<T> =
  | { readonly ok: true; readonly value: T; readonly problem?: string }
  | { readonly ok: false; readonly why: "notPermitted" | "invalidKind" | "invalid"; readonly message: string };

/** An object that refers to others. */
export interface Referrer {
  readonly kind: "Gateway" | "ListenerSet" | "Ingress" | "BackendTLSPolicy";
  readonly namespace: string;
}

interface Reference {
  readonly group?: string;
  readonly kind?: string;
  readonly name: string;
  readonly namespace?: string;
}

/** The certificate of a Secret of type kubernetes.io/tls. */
export function loadCertificate(read: Read, from: Referrer, reference: Reference): Loaded<CertificateAndKey> {
  return follow(read, from, { kind: "Secret", ...reference }, ["Secret"], (key) => read.query(tlsSecret, key));
}

/** PEM of the certificates in `ca.crt` of a ConfigMap or Secret. */
export function loadCaBundle(read: Read, from: Referrer, reference: Reference): Loaded<string> {
  const kinds = ["ConfigMap", "Secret"];
  return follow(read, from, reference, kinds, (key, kind) => read.query(caBundle, `${kind}/${key}`));
}

function follow<T>(
  read: Read,
  from: Referrer,
  { group = "", kind = "", name, namespace = from.namespace }: Reference,
  kinds: readonly string[],
  load: (key: string, kind: string) => Loaded<T>,
): Loaded<T> {
  const key = objectKey({ namespace, name });
  if (group !== "" || !kinds.includes(kind)) {
    const named = group === "" ? kind : `${kind} (${group})`;
    const message = `${named} ${key} is not supported; expected a ${kinds.join(" or ")}`;
    return { ok: false, why: "invalidKind", message };
  }
  if (!isGranted(read, { group: GATEWAY_GROUP, ...from }, { group: "", kind, namespace, name }))
    return {
      ok: false,
      why: "notPermitted",
      message: `${kind} ${key} is in another namespace; create a ReferenceGrant there for ${from.kind} of ${from.namespace}`,
    };
  return load(key, kind);
}

/** The certificate in use: that of the Secret, or the former one if there is a reason to keep it. */
const tlsSecret = defineQuery<Loaded<CertificateAndKey>>("tlsSecret", (read, key) => {
  const secret = read.get("Secret", key);
  if (secret === undefined) return { ok: false, why: "invalid", message: `Secret ${key} does not exist` };
  const now = read.get("Clock", "controller")?.now ?? 0;
  const current = readTlsSecret(secret, now);
  const former = read.get("FormerCertificate", key)?.certificate;
  if (former === undefined) return current;
  const problem = current.ok ? current.problem : current.message;
  return { ok: true, value: former, problem: `${problem}; the former certificate stays in use` };
});

/**
 * What a Secret of type kubernetes.io/tls holds. An OCSP response that cannot be used does not keep the certificate from being
 * used: it is left out. `now` in milliseconds decides what has expired; an expired certificate can be served.
 */
export function readTlsSecret({ metadata, data = {} }: Secret, now: number): Loaded<CertificateAndKey> {
  const name = `Secret ${objectKey(metadata)}`;
  const { "tls.crt": cert, "tls.key": privateKey, [OCSP_STAPLE]: ocspStaple } = data;
  if (cert === undefined || privateKey === undefined)
    return { ok: false, why: "invalid", message: `${name} has no ${cert === undefined ? "tls.crt" : "tls.key"}` };
  const pair = { cert: decode(cert), key: decode(privateKey) };
  const unusable = checkTlsServer(pair);
  if (unusable !== undefined) {
    const message = CERTIFICATE_PROBLEMS[unusable.field ?? ""] ?? unusable.message;
    return { ok: false, why: "invalid", message: `${name}: ${message}` };
  }
  const stapled = ocspStaple === undefined ? pair : { ...pair, ocspStaple };
  const bad = checkTlsServer(stapled);
  const value = bad === undefined ? stapled : pair;
  const [problem = bad] = findExpired(value, now);
  if (problem === undefined) return { ok: true, value };
  const field = problem.field === "ocspStaple" ? OCSP_STAPLE : "tls.crt";
  return { ok: true, value, problem: `${name}: ${field}: ${problem.message}` };
}

/** The data of a Secret from which `readTlsSecret` reads this certificate. */
export function tlsSecretData({ cert, key, ocspStaple }: CertificateAndKey): NonNullable<Secret["data"]> {
  const encoded = (text: string): string => Buffer.from(text).toString("base64");
  const pair = { "tls.crt": encoded(cert), "tls.key": encoded(key) };
  return ocspStaple === undefined ? pair : { ...pair, [OCSP_STAPLE]: ocspStaple };
}

/** Names of the data of a Secret; Istio and kgateway have the same one for OCSP responses (DER). */
const OCSP_STAPLE = "tls.ocsp-staple";

/** In terms of a Secret instead of files. */
const CERTIFICATE_PROBLEMS: { readonly [F in NonNullable<TlsProblem["field"]> | ""]?: string } & Readonly<
  Record<string, string>
> = {
  cert: "tls.crt is not a certificate in PEM",
  key: "tls.key is not the private key of the certificate in tls.crt, in PEM and without a passphrase",
};

/** Key: a `refKey`. */
const caBundle = defineQuery<Loaded<string>>("caBundle", (read, key) => {
  const { kind, ...ref } = refOf(key);
  const name = objectKey(ref);
  const shown = `${kind} ${name}`;
  const encoded = (text: string | undefined): string | undefined => (text === undefined ? undefined : decode(text));
  const object = kind === "Secret" ? read.get("Secret", name) : read.get("ConfigMap", name);
  if (object === undefined) return { ok: false, why: "invalid", message: `${shown} does not exist` };
  const pem = object.kind === "Secret" ? encoded(object.data?.["ca.crt"]) : object.data?.["ca.crt"];
  if (pem === undefined) return { ok: false, why: "invalid", message: `${shown} has no ca.crt` };
  const certificates = pem.match(/-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g) ?? [];
  if (certificates.length === 0 || certificates.some((each) => readCertificate(each) === undefined))
    return { ok: false, why: "invalid", message: `${shown}: ca.crt is not a certificate in PEM` };
  return { ok: true, value: `${certificates.join("\n")}\n` };
});

function decode(base64: string): string {
  return Buffer.from(base64, "base64").toString("utf8");
}

/**
 * TLS of the stream. All replicas of the controller share one CA, in the Secret `tracegate-xds-cert`; each signs a certificate of
 * its own with it, which is never stored. Proxies trust the CA by a ConfigMap beside them. The Secret is read and
 * compared periodically, so deleting or damaging it does no lasting harm.
 */
import { X509Certificate } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { ServerCredentials } from "@grpc/grpc-js";
import { messageOf } from "../../base/errors.ts";
import type { Logger } from "../../base/log.ts";
import { Backoff } from "../../kube/backoff.ts";
import { type KubeClient, KubeError, resourcePath } from "../../kube/client.ts";
import type { Secret } from "../../kube/objects.ts";
import { RESOURCES } from "../../kube/resources.ts";
import { makeAuthority } from "../../tls/x509/authority.ts";
import { readIssuer } from "../../tls/x509/issuer.ts";
import { mintLeaf } from "../../tls/x509/leaf.ts";

export const CERTIFICATE_SECRET = "tracegate-xds-cert";
const HOUR = 3_600_000;
const CA_LIFETIME = 10 * 365 * 24 * HOUR;
/** A CA that ends within this time is replaced. The former one stays trusted until it ends. */
const CA_RENEWAL = 90 * 24 * HOUR;
/** Certificates of servers are valid for 24 hours. */
const LEAF_RENEWAL = 12 * HOUR;
const CHECK_EVERY = 10 * 60_000;
const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 30_000;

interface XdsCertificatesOptions {
  readonly client: KubeClient;
  /** Of the controller. */
  readonly namespace: string;
  /** The Service that proxies connect to. */
  readonly service: string;
  readonly log: Logger;
  /** The certificates that proxies have to trust, in PEM; called at first and after every change. */
  readonly onCa?: (bundle: string) => void;
  /** Milliseconds since 1970. */
  readonly now?: () => number;
}

/** A CA with the certificates that are trusted: its own first. */
interface Authority {
  readonly cert: string;
  readonly key: string;
  readonly bundle: string;
}

export class XdsCertificates {
  readonly credentials = new RotatingCredentials();
  readonly #options: XdsCertificatesOptions;
  readonly #now: () => number;
  readonly #closed = new AbortController();
  #authority: Authority | undefined;
  #renewAt = 0;

  constructor(options: XdsCertificatesOptions) {
    this.#options = options;
    this.#now = options.now ?? Date.now;
  }

  /** What proxies have to trust, in PEM; undefined before `start` has resolved. */
  get ca(): string | undefined {
    return this.#authority?.bundle;
  }

  /** Resolves once there is a certificate, however long the API server takes; then keeps it current until `close`. */
  async start(): Promise<void> {
    const backoff = new Backoff(FIRST_PAUSE, LONGEST_PAUSE);
    while (!this.#closed.signal.aborted) {
      if (await this.check()) break;
      await this.#pause(backoff.next());
    }
    void this.#keep();
  }

  close(): void {
    this.#closed.abort();
  }

  /** Brings the Secret and the certificate up to date. Resolves to whether that succeeded. */
  async check(): Promise<boolean> {
    try {
      const authority = await this.#agree();
      if (authority.bundle !== this.#authority?.bundle || this.#now() >= this.#renewAt) this.#use(authority);
      return true;
    } catch (error) {
      this.#options.log.warn("the certificate of the configuration stream cannot be checked", {
        secret: `${this.#options.namespace}/${CERTIFICATE_SECRET}`,
        reason: messageOf(error),
      });
      // Without the API server, the known CA still signs.
      if (this.#authority !== undefined && this.#now() >= this.#renewAt) this.#use(this.#authority);
      return false;
    }
  }

  async #keep(): Promise<void> {
    while (!this.#closed.signal.aborted) {
      await this.#pause(CHECK_EVERY);
      if (!this.#closed.signal.aborted) await this.check();
    }
  }

  #pause(milliseconds: number): Promise<void> {
    return delay(milliseconds, undefined, { signal: this.#closed.signal, ref: false }).catch(() => undefined);
  }

  #use(authority: Authority): void {
    const { service, namespace, log, onCa } = this.#options;
    const inCluster = `${service}.${namespace}.svc`;
    const others = [`${service}.${namespace}`, `${inCluster}.cluster.local`, service];
    const leaf = mintLeaf(readIssuer(authority.cert, authority.key), inCluster, this.#now(), others);
    this.credentials.rotate({ cert: leaf.cert + authority.cert, key: leaf.key });
    this.#renewAt = this.#now() + LEAF_RENEWAL;
    log.info("certificate made", { serial: leaf.serialNumber, expires: new Date(leaf.notAfter).toISOString() });
    const changed = authority.bundle !== this.#authority?.bundle;
    this.#authority = authority;
    if (changed) onCa?.(authority.bundle);
  }

  /** The CA of the Secret. Without a usable one, this replica writes one; of several replicas that do so, one wins. */
  async #agree(): Promise<Authority> {
    for (;;) {
      const secret = await this.#read();
      const found = secret && usable(secret, this.#now());
      if (found !== undefined) return found;
      const former = secret === undefined ? undefined : trusted(secret, this.#now());
      // A deleted Secret is created again with the CA that proxies already trust.
      const known =
        this.#authority !== undefined && lastsLong(this.#authority.cert, this.#now()) ? this.#authority : undefined;
      const made = known ?? withFormer(makeAuthority("tracegate xds", this.#now(), CA_LIFETIME), former);
      try {
        await this.#write(made, secret);
        return made;
      } catch (error) {
        // Another replica was faster: its CA holds.
        if (!(error instanceof KubeError) || error.status !== 409) throw error;
      }
    }
  }

  async #read(): Promise<Secret | undefined> {
    const { client, namespace } = this.#options;
    try {
      return await client.request<Secret>("GET", resourcePath(RESOURCES.Secret, namespace, CERTIFICATE_SECRET));
    } catch (error) {
      if (error instanceof KubeError && error.status === 404) return undefined;
      throw error;
    }
  }

  async #write({ cert, key, bundle }: Authority, existing: Secret | undefined): Promise<void> {
    const { client, namespace } = this.#options;
    const metadata = {
      name: CERTIFICATE_SECRET,
      namespace,
      labels: { "app.kubernetes.io/managed-by": "tracegate" },
      // Fails if another replica has written meanwhile.
      ...(existing !== undefined && { resourceVersion: existing.metadata.resourceVersion }),
    };
    const data = { "tls.crt": encode(cert), "tls.key": encode(key), "ca.crt": encode(bundle) };
    const body = { apiVersion: "v1", kind: "Secret", type: existing?.type ?? "kubernetes.io/tls", metadata, data };
    if (existing === undefined) await client.request("POST", resourcePath(RESOURCES.Secret, namespace), { body });
    else await client.request("PUT", resourcePath(RESOURCES.Secret, namespace, CERTIFICATE_SECRET), { body });
    this.#options.log.info("CA of the configuration stream written", { secret: `${namespace}/${CERTIFICATE_SECRET}` });
  }
}

/** The CA of a Secret; undefined if it cannot sign, or ends soon. */
function usable({ data = {} }: Secret, now: number): Authority | undefined {
  const cert = decode(data["tls.crt"]);
  const key = decode(data["tls.key"]);
  try {
    const certificate = new X509Certificate(cert);
    if (!certificate.ca || !lastsLong(cert, now)) return undefined;
    readIssuer(cert, key);
  } catch {
    return undefined;
  }
  const bundle = decode(data["ca.crt"]);
  return { cert, key, bundle: bundle.includes(cert.trim()) ? bundle : cert };
}

/** Certificates that proxies may still trust; undefined if none is valid. */
function trusted({ data = {} }: Secret, now: number): string | undefined {
  const cert = decode(data["tls.crt"]);
  try {
    return new X509Certificate(cert).validToDate.getTime() > now ? cert : undefined;
  } catch {
    return undefined;
  }
}

function withFormer(made: { readonly cert: string; readonly key: string }, former: string | undefined): Authority {
  return { ...made, bundle: made.cert + (former ?? "") };
}

/** Whether a CA lasts until its renewal. */
function lastsLong(cert: string, now: number): boolean {
  return new X509Certificate(cert).validToDate.getTime() - now > CA_RENEWAL;
}

function encode(text: string): string {
  return Buffer.from(text).toString("base64");
}

function decode(data = ""): string {
  return Buffer.from(data, "base64").toString("utf8");
}

/** Credentials whose certificate is replaced without a restart; connections that are open keep theirs. */
class RotatingCredentials extends ServerCredentials {
  constructor() {
    super({ minVersion: "TLSv1.2" });
  }

  rotate({ cert, key }: { readonly cert: string; readonly key: string }): void {
    this.updateSecureContextOptions({ cert, key });
  }

  _equals(other: ServerCredentials): boolean {
    return this === other;
  }
}

/**
 * Former certificates in the cluster: while the content of a Secret cannot be used, a Secret beside it has what it held before, so
 * that a controller that starts meanwhile knows it too. The copy belongs to the Secret and is deleted with it.
 */
import { createHash } from "node:crypto";
import { asError } from "../base/errors.ts";
import type { Logger } from "../base/log.ts";
import { nameOfKey } from "../base/object-key.ts";
import { type KubeClient, KubeError, resourcePath } from "../kube/client.ts";
import { keyOfObject } from "../kube/keys.ts";
import type { OwnerReference, Secret } from "../kube/objects.ts";
import { RESOURCES } from "../kube/resources.ts";
import type { CertificateAndKey } from "../tls/tls-settings.ts";
import { CONTROLLER, MANAGER } from "./base/manifest.ts";
import { WorkQueue } from "./base/work-queue.ts";
import { defineIndex, defineQuery, type Read } from "./graph/graph.ts";
import { tlsSecretData } from "./translate/cluster/secrets.ts";
import { gatewayModel } from "./translate/listeners/gateways.ts";
import { controllerName } from "./translate/model/gateway-class.ts";

/** Label of the copies; not that of what Gateways own. */
const LABEL = "tracegate.dev/former-certificate";
const RESTS = { failure: { first: 500, longest: 60_000 } };
/** Characters of a name (RFC 1123). */
const MAX_NAME = 253;

/** The Secret that a copy belongs to; undefined: not a copy. */
export function keptFor({ metadata }: Secret): { readonly key: string; readonly uid: string } | undefined {
  const owner = metadata.ownerReferences?.find(({ kind }) => kind === "Secret");
  if (metadata.labels?.[LABEL] === undefined || owner === undefined) return undefined;
  return { key: `${metadata.namespace}/${owner.name}`, uid: owner.uid };
}

interface KeptCertificates {
  /** Copies to be created. */
  readonly missing: readonly Secret[];
  /** Keys of copies that are no longer needed. */
  readonly superfluous: readonly string[];
}

const COPIES = defineIndex("Secret", (secret) => (keptFor(secret) === undefined ? [] : [LABEL]));

/** Compares the copies of this controller with the former certificates that its Gateways use. */
export const keptCertificates = defineQuery<KeptCertificates>("keptCertificates", (read) => {
  const used = certificatesInUse(read);
  const owner = controllerName(read);
  const wanted = read.list("FormerCertificate").flatMap(({ metadata, certificate }) => {
    const secret = read.get("Secret", keyOfObject({ apiVersion: "", kind: "Secret", metadata }));
    return secret !== undefined && used.has(certificate.cert) ? copyOf(secret, certificate, owner) : [];
  });
  const existing = read.find(COPIES, LABEL).filter(({ metadata }) => metadata.annotations?.[CONTROLLER] === owner);
  const names = new Set(existing.map(keyOfObject));
  const keep = new Set(wanted.map(keyOfObject));
  return {
    missing: wanted.filter((copy) => !names.has(keyOfObject(copy))),
    superfluous: [...names].filter((key) => !keep.has(key)),
  };
});

/** PEM of the certificates that Gateways of ours present. */
function certificatesInUse(read: Read): ReadonlySet<string> {
  const used = new Set<string>();
  for (const gateway of read.list("Gateway")) {
    const model = read.query(gatewayModel, keyOfObject(gateway));
    if (model?.clientCertificate !== undefined) used.add(model.clientCertificate.cert);
    for (const { tls } of model?.listeners ?? []) {
      if (tls === undefined || tls === "passthrough") continue;
      for (const { cert } of [tls, ...(tls.otherCertificates ?? [])]) if (cert !== undefined) used.add(cert);
    }
  }
  return used;
}

/** Its name changes with its content, so it never has to be written again. */
function copyOf({ metadata }: Secret, certificate: CertificateAndKey, owner: string): Secret {
  const { name, namespace, uid = "" } = metadata;
  const data = tlsSecretData(certificate);
  const suffix = `-former-${createHash("sha256").update(`${name} ${certificate.cert}`).digest("hex").slice(0, 12)}`;
  const reference: OwnerReference = { apiVersion: "v1", kind: "Secret", name, uid };
  return {
    apiVersion: "v1",
    kind: "Secret",
    type: "kubernetes.io/tls",
    metadata: {
      name: name.slice(0, MAX_NAME - suffix.length) + suffix,
      namespace,
      labels: { [LABEL]: "true" },
      annotations: { [CONTROLLER]: owner },
      ownerReferences: [reference],
    },
    data,
  };
}

/** Makes the copies in the cluster what they should be. To be run by the leader. */
export class CertificateKeeper {
  readonly #queue: WorkQueue;
  #wanted: KeptCertificates = { missing: [], superfluous: [] };

  constructor(client: KubeClient, log: Logger) {
    const work = async (key: string, signal: AbortSignal): Promise<boolean> => {
      const { namespace, name } = nameOfKey(key);
      const copy = this.#wanted.missing.find((each) => keyOfObject(each) === key);
      try {
        if (copy !== undefined) {
          const path = resourcePath(RESOURCES.Secret, namespace);
          await client.request("POST", path, { query: { fieldManager: MANAGER }, body: copy, signal });
          log.info("keeps a former certificate", { secret: key });
        } else if (this.#wanted.superfluous.includes(key))
          await client.request("DELETE", resourcePath(RESOURCES.Secret, namespace, name), { signal });
      } catch (error) {
        // Done already; the watch has not shown it yet.
        if (!(error instanceof KubeError) || (error.reason !== "AlreadyExists" && error.status !== 404)) throw error;
      }
      return true;
    };
    this.#queue = new WorkQueue(1, RESTS, work, (secret, error, failures) =>
      log.warn("cannot keep a former certificate, retrying", { secret, failures, error: asError(error) }),
    );
  }

  /** To be called once all objects have been read, and after changes. */
  update(wanted: KeptCertificates): void {
    if (this.#wanted === wanted) return;
    this.#wanted = wanted;
    for (const key of [...wanted.missing.map(keyOfObject), ...wanted.superfluous]) this.#queue.add(key);
  }

  /** Resolves when no request is in progress. */
  close(): Promise<void> {
    return this.#queue.close();
  }
}

/**
 * Certificates while their Secrets change and time passes. In: the Secrets that are used. Out: the same Secrets to the syncer,
 * a `FormerCertificate` for each whose new content must not replace what it held before, and the `Clock`.
 */
import type { Logger } from "../base/log.ts";
import { keyOfObject } from "../kube/keys.ts";
import type { Kind, Objects, Secret } from "../kube/objects.ts";
import { findExpired } from "../tls/tls-check.ts";
import type { CertificateAndKey } from "../tls/tls-settings.ts";
import type { Graph } from "./graph/graph.ts";
import { clock, formerCertificate } from "./graph/inputs.ts";
import { keptFor } from "./kept-certificates.ts";
import type { Syncer } from "./syncer.ts";
import { type Loaded, readTlsSecret } from "./translate/cluster/secrets.ts";

/** Milliseconds between ticks of the clock: how late a status may say that a certificate has expired. */
const TICK_MS = 60 * 60 * 1000;

interface CertificatesOptions {
  readonly graph: Graph;
  readonly syncer: Pick<Syncer, "set" | "delete">;
  readonly log: Logger;
}

/**
 * Takes Secrets as they come and go. A certificate that does not match its key, cannot be read or has expired does not replace one
 * that could be used, as with files. A Secret that was bad already when the controller started may have a copy of what it held
 * before, see kept-certificates.ts. Deleting the Secret ends the use of both: that may be its purpose.
 */
export class Certificates {
  readonly #options: CertificatesOptions;
  readonly #timer: NodeJS.Timeout;

  constructor(options: CertificatesOptions) {
    this.#options = options;
    this.#tick();
    this.#timer = setInterval(() => this.#tick(), TICK_MS).unref();
  }

  close(): void {
    clearInterval(this.#timer);
  }

  set(object: Objects[Kind]): void {
    this.#compare(object);
    this.#options.syncer.set(object);
    this.#restore(object);
  }

  delete(kind: Kind, key: string): void {
    this.#options.syncer.delete("FormerCertificate", key);
    this.#options.syncer.delete(kind, key);
  }

  #tick(): void {
    this.#options.syncer.set(clock(Date.now()));
  }

  #compare(object: Objects[Kind]): void {
    if (object.kind !== "Secret") return;
    const secret = object as Secret;
    const replacement = replacementBy(secret, this.#options.graph);
    if (replacement === "used") this.#options.syncer.delete("FormerCertificate", keyOfObject(secret));
    else if (replacement !== undefined) this.#keep(secret, replacement.inUse, replacement.problem);
  }

  /** Uses a copy in place of the Secret that it belongs to, unless that Secret is usable itself. */
  #restore(object: Objects[Kind]): void {
    if (object.kind !== "Secret") return;
    const { graph } = this.#options;
    const owner = keptFor(object as Secret);
    if (owner === undefined) {
      // The copy may arrive first.
      const key = keyOfObject(object);
      for (const copy of graph.list("Secret")) if (keptFor(copy)?.key === key) this.#restore(copy);
      return;
    }
    if (graph.get("FormerCertificate", owner.key) !== undefined) return;
    const secret = graph.get("Secret", owner.key);
    const now = Date.now();
    const kept = usable(readTlsSecret(object as Secret, now));
    if (secret === undefined || secret.metadata.uid !== owner.uid || kept === undefined) return;
    const problem = replacementProblem(readTlsSecret(secret, now), kept, now);
    if (problem !== undefined) this.#keep(secret, kept, problem);
  }

  #keep(secret: Secret, inUse: CertificateAndKey, problem: string): void {
    const { syncer, log } = this.#options;
    syncer.set(formerCertificate(secret, inUse));
    log.warn(`${problem}; the former certificate stays in use`);
  }
}

/**
 * Whether what a Secret holds can take the place of what it held before, in `graph`: it is used, or the former certificate stays in use.
 * Undefined: nothing changes, or there was no certificate that could be used.
 */
export function replacementBy(
  secret: Secret,
  graph: Pick<Graph, "get">,
): "used" | { readonly inUse: CertificateAndKey; readonly problem: string } | undefined {
  const key = keyOfObject(secret);
  const before = graph.get("Secret", key);
  if (before === undefined || isSame(before, secret)) return undefined;
  const now = Date.now();
  const former = graph.get("FormerCertificate", key)?.certificate;
  const inUse = former ?? usable(readTlsSecret(before, now));
  if (inUse === undefined) return undefined;
  const problem = replacementProblem(readTlsSecret(secret, now), inUse, now);
  return problem === undefined ? "used" : { inUse, problem };
}

/** Why the new content must not take the place of `inUse`. */
function replacementProblem(
  next: Loaded<CertificateAndKey>,
  inUse: CertificateAndKey,
  now: number,
): string | undefined {
  if (!next.ok) return next.message;
  const expired = findExpired(next.value, now).some(({ field }) => field === "cert");
  return expired && next.value.cert !== inUse.cert ? next.problem : undefined;
}

function usable(loaded: Loaded<CertificateAndKey>): CertificateAndKey | undefined {
  return loaded.ok ? loaded.value : undefined;
}

/** Secrets are listed again now and then, and annotated; reading a certificate takes 0.1 ms. */
function isSame(a: Secret, b: Secret): boolean {
  return ["tls.crt", "tls.key"].every((name) => a.data?.[name] === b.data?.[name]);
}

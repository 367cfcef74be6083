/**
 * Makes the objects that run the proxies of each fleet what they should be, and keeps them so: by server-side apply whenever
 * what is wanted or what exists changes. In: all deployments, and the watched objects of ours. Out: requests, and for each fleet
 * why it could not be deployed. To be run by the leader.
 */
import { createHash, randomBytes } from "node:crypto";
import { asError, messageOf } from "../../base/errors.ts";
import type { Logger } from "../../base/log.ts";
import { objectKey } from "../../base/object-key.ts";
import { type KubeClient, KubeError, resourcePath } from "../../kube/client.ts";
import { refOf } from "../../kube/keys.ts";
import type { Kind, KubeObject } from "../../kube/objects.ts";
import { Reflector, type Sink } from "../../kube/reflector.ts";
import { RESOURCES } from "../../kube/resources.ts";
import { classOfFleet } from "../../xds/resources.ts";
import { CONTROLLER, MANAGED_BY, MANAGER, type Manifest, OWNED_KINDS, type OwnedKind, PODS } from "../base/manifest.ts";
import { isOlder } from "../base/resource-version.ts";
import type { ControllerSettings } from "../base/settings.ts";
import { scopesOf } from "../base/watched.ts";
import { WorkQueue } from "../base/work-queue.ts";
import type { FleetDeployment } from "./deployments.ts";
import { fleetOfObject, type OwnedObject, ownedId, ownedObject } from "./owned-objects.ts";
import { Rollouts } from "./rollouts.ts";
import { COOKIE_KEY } from "./workload.ts";

/** Fleets at once. */
const PARALLEL = 4;
const RESTS = {
  failure: { first: 500, longest: 60_000 },
  // Another writer that keeps changing our objects back must not make us write as fast as it does.
  change: { first: 50, longest: 10_000, quiet: 10_000 },
};
/** Failures in a row after which a Gateway's status shows one that may pass, such as that of a busy API server. */
const LASTING_FAILURES = 3;

interface DeployerOptions {
  readonly client: KubeClient;
  readonly settings: ControllerSettings;
  readonly log: Logger;
  /** Called with the reason why a fleet (its key) cannot be deployed when it changes; undefined: deployed. */
  readonly report: (fleet: string, error: string | undefined) => void;
}

/** What was last applied of an object. */
interface Applied {
  readonly digest: string;
  readonly object: OwnedObject;
}

export class Deployer {
  /** Since the start. */
  readonly counters = { applied: 0, deleted: 0, failures: 0 };
  readonly #options: DeployerOptions;
  readonly #queue: WorkQueue;
  #deployments: ReadonlyMap<string, FleetDeployment> = new Map();
  /** By `ownedId`, as the watches know them. */
  readonly #owned = new Map<string, OwnedObject>();
  /** By `ownedId`. Dropped when another writer changes the object. */
  readonly #applied = new Map<string, Applied>();
  readonly #reported = new Map<string, string>();
  readonly #rollouts: Rollouts;
  /** All owned objects are known. Before that, everything would look new. */
  #synced = false;

  constructor(options: DeployerOptions) {
    this.#options = options;
    this.#rollouts = new Rollouts(options.settings.proxy.maxRollouts, (fleet) => this.#again(fleet));
    this.#queue = new WorkQueue(
      PARALLEL,
      RESTS,
      (key, signal) => this.#reconcile(key, signal),
      (key, error, failures) => this.#failed(key, error, failures),
    );
  }

  /** Takes the deployments of all fleets. To be called once everything that they depend on has been read, and after changes. */
  update(deployments: readonly FleetDeployment[]): void {
    const before = this.#deployments;
    this.#deployments = new Map(deployments.map((each) => [each.key, each]));
    for (const key of this.#reported.keys()) if (!this.#deployments.has(key)) this.#report(key, undefined);
    for (const key of before.keys()) if (!this.#deployments.has(key)) this.#rollouts.end(key);
    if (!this.#synced) return;
    // A change may mend what made the last attempt fail.
    for (const [key, deployment] of this.#deployments) if (before.get(key) !== deployment) this.#queue.retry(key);
    for (const key of this.#orphans()) this.#queue.add(key);
  }

  /** Fleets that Gateways of a class have shared, without the class. Kubernetes deletes what a Gateway owns, but nothing owns these. */
  #orphans(): ReadonlySet<string> {
    const fleets = [...this.#owned.values()].flatMap(({ fleet }) => fleet ?? []);
    return new Set(fleets.filter((fleet) => isShared(fleet) && !this.#deployments.has(fleet)));
  }

  /** Watches our objects until `signal` aborts. Resolves when no request is in progress. */
  async run(signal: AbortSignal): Promise<void> {
    const { client, settings, log } = this.#options;
    const selectors = { labelSelector: `${MANAGED_BY}=${MANAGER}` };
    const reflectors = OWNED_KINDS.flatMap((kind) =>
      scopesOf(kind, settings.watch.namespaces).map(
        (namespace) => new Reflector<Kind>({ client, kind, namespace, selectors, sink: this.#sink, log }),
      ),
    );
    const running = reflectors.map((reflector) => reflector.run(signal));
    void Promise.all(reflectors.map(({ synced }) => synced)).then(() => {
      this.#synced = true;
      for (const key of [...this.#deployments.keys(), ...this.#orphans()]) this.#queue.add(key);
    });
    await Promise.all(running);
    await this.#queue.close();
    this.#rollouts.close();
  }

  readonly #sink: Sink = {
    replace: (kind, objects, namespace) => {
      const seen = new Set(objects.filter((object) => this.#isOurs(object)).map((object) => this.#seen(object)));
      const isListed = (each: OwnedObject): boolean =>
        each.kind === kind && (namespace === undefined || each.metadata.namespace === namespace);
      for (const [id, object] of this.#owned) if (isListed(object) && !seen.has(id)) this.#lost(id);
    },
    set: (object) => {
      if (this.#isOurs(object)) this.#seen(object);
      else this.#lost(ownedId(object));
    },
    delete: (kind, key) => this.#lost(`${kind}/${key}`),
  };

  #isOurs({ metadata }: KubeObject): boolean {
    return metadata.annotations?.[CONTROLLER] === this.#options.settings.controllerName;
  }

  #seen(object: KubeObject): string {
    const kind = object.kind as OwnedKind;
    const owned = ownedObject(kind, object);
    const id = ownedId(owned);
    const before = this.#owned.get(id);
    this.#owned.set(id, owned);
    const applied = this.#applied.get(id);
    if (applied !== undefined && applied.object.fingerprint !== owned.fingerprint && !isOlder(owned, applied.object)) {
      this.#applied.delete(id);
      this.#again(applied.object.fleet);
    }
    if (owned.rolledOut && owned.fleet !== undefined) {
      const deployment = this.#deployments.get(owned.fleet);
      // An event about the former pods may arrive while the request for new ones is in flight.
      if (deployment === undefined || !this.#replacesPods(deployment)) this.#rollouts.end(owned.fleet);
    }
    // A workload of the other kind may wait for this one.
    if (owned.available && before?.available !== true) this.#again(owned.fleet);
    return id;
  }

  #lost(id: string): void {
    const owned = this.#owned.get(id);
    this.#owned.delete(id);
    const applied = this.#applied.get(id);
    this.#applied.delete(id);
    this.#again(applied?.object.fleet ?? owned?.fleet);
  }

  #again(fleet: string | undefined): void {
    if (this.#synced && fleet !== undefined && (this.#deployments.has(fleet) || isShared(fleet)))
      this.#queue.add(fleet);
  }

  /** Resolves with whether anything was changed. */
  async #reconcile(key: string, signal: AbortSignal): Promise<boolean> {
    const deployment = this.#deployments.get(key) ?? (isShared(key) ? goneOf(key) : undefined);
    if (deployment === undefined) return false;
    if (deployment.problem !== undefined) throw new Error(deployment.problem);
    if (deployment.action === "keep") return false;
    const done = this.counters.applied + this.counters.deleted;
    const wanted = new Set<string>();
    const failures: unknown[] = [];
    if (deployment.action === "apply") {
      const { secret } = deployment;
      const waits = this.#replacesPods(deployment) && !this.#rollouts.admit(key);
      for (const object of [...(secret === undefined ? [] : [secret]), ...deployment.objects]) {
        wanted.add(ownedId(object));
        // The proxies' configuration file must match their version.
        if (waits && (object.kind === "ConfigMap" || isWorkload(object.kind))) continue;
        try {
          if (object === secret) await this.#create(key, object, signal);
          else await this.#apply(key, object, signal);
        } catch (cause) {
          if (signal.aborted) throw cause;
          failures.push(new Error(`${object.kind} ${objectKey(object.metadata)}: ${messageOf(cause)}`, { cause }));
        }
      }
    }
    if (failures.length > 0) throw failures[0];
    await this.#deleteOthers(key, wanted, signal);
    this.#report(key, undefined);
    return this.counters.applied + this.counters.deleted > done;
  }

  /** Whether pods are running that have to be replaced. */
  #replacesPods({ objects }: FleetDeployment): boolean {
    return objects.some((object) => {
      if (!isWorkload(object.kind)) return false;
      const owned = this.#owned.get(ownedId(object));
      return owned !== undefined && owned.pods !== object.metadata.annotations[PODS];
    });
  }

  async #apply(key: string, object: Manifest, signal: AbortSignal): Promise<void> {
    const id = ownedId(object);
    const digest = createHash("sha1").update(JSON.stringify(object)).digest("base64");
    if (this.#applied.get(id)?.digest === digest) return;
    if (this.#owned.get(id)?.fleet !== key) await this.#checkFree(key, object, signal);
    const { client, log } = this.#options;
    const live = await client.request<KubeObject>("PATCH", pathOf(object), {
      query: { fieldManager: MANAGER, force: "true" },
      contentType: "application/apply-patch+yaml",
      body: object,
      signal,
    });
    this.#applied.set(id, { digest, object: ownedObject(object.kind, live) });
    this.counters.applied++;
    log.debug("applied", { kind: object.kind, object: objectKey(object.metadata) });
  }

  /** The key of login cookies is made once: a new one would end all sessions. */
  async #create(key: string, secret: Manifest, signal: AbortSignal): Promise<void> {
    const id = ownedId(secret);
    if (this.#owned.get(id)?.fleet === key || this.#applied.get(id)?.object.fleet === key) return;
    const { namespace } = secret.metadata;
    const body = { ...secret, stringData: { [COOKIE_KEY]: randomBytes(32).toString("hex") } };
    try {
      const options = { query: { fieldManager: MANAGER }, body, signal };
      const live = await this.#options.client.request<KubeObject>(
        "POST",
        resourcePath(RESOURCES.Secret, namespace),
        options,
      );
      this.#applied.set(id, { digest: "", object: ownedObject("Secret", live) });
      this.counters.applied++;
    } catch (error) {
      if (!(error instanceof KubeError) || error.reason !== "AlreadyExists") throw error;
      await this.#checkFree(key, secret, signal);
    }
  }

  /**
   * An object of another owner with the same name is not taken over: neither one of a user, nor one of another Gateway,
   * such as the ConfigMap `web-xds-ca` of Gateway `web` by a Gateway with that name.
   */
  async #checkFree(key: string, object: Manifest, signal: AbortSignal): Promise<void> {
    try {
      const { metadata } = await this.#options.client.request<KubeObject>("GET", pathOf(object), { signal });
      const [owner] = object.metadata.ownerReferences ?? [];
      if (owner !== undefined && metadata.ownerReferences?.some(({ uid }) => uid === owner.uid)) return;
      // It may have lost its owner, or belong to a Gateway of this name that was deleted a moment ago.
      const isFree = metadata.ownerReferences?.every(({ controller }) => controller !== true) ?? true;
      const former = fleetOfObject(metadata);
      const ours = metadata.annotations?.[CONTROLLER] === object.metadata.annotations[CONTROLLER];
      if (ours && (former === undefined ? isFree : former === key)) return;
    } catch (error) {
      if (error instanceof KubeError && error.status === 404) return;
      throw error;
    }
    throw new TakenError(
      isShared(key)
        ? "exists already and does not belong to the GatewayClass; delete it, or put the parameters of the class into another namespace"
        : "exists already and does not belong to the Gateway; delete it, or give the Gateway another name",
    );
  }

  /** Deletes objects of a fleet that are no longer needed. */
  async #deleteOthers(key: string, wanted: ReadonlySet<string>, signal: AbortSignal): Promise<void> {
    const owned = [...this.#owned].filter(([, { fleet }]) => fleet === key);
    const workload = owned.find(([id, { kind }]) => wanted.has(id) && isWorkload(kind))?.[1];
    const replaced = [...wanted].some((id) => isWorkload(refOf(id).kind)) && workload?.available !== true;
    const namespaces = new Set([...wanted].map((id) => refOf(id).namespace));
    for (const [id, object] of owned) {
      const { metadata } = object;
      // Old pods serve until new ones do; those of another namespace with all that they have, such as their Service.
      if (wanted.has(id) || (replaced && (isWorkload(object.kind) || !namespaces.has(metadata.namespace ?? ""))))
        continue;
      const body = { preconditions: { uid: metadata.uid }, propagationPolicy: "Background" };
      try {
        await this.#options.client.request("DELETE", pathOf(object), { body, signal });
        this.counters.deleted++;
        this.#options.log.info("deleted an object that is no longer needed", {
          kind: object.kind,
          object: objectKey(metadata),
        });
      } catch (error) {
        // Gone, or another one has its name.
        if (!(error instanceof KubeError) || (error.status !== 404 && error.status !== 409)) throw error;
      }
      this.#applied.delete(id);
    }
  }

  #failed(key: string, error: unknown, failures: number): void {
    this.counters.failures++;
    const { log } = this.#options;
    if (failures === 1 || failures === LASTING_FAILURES)
      log.warn("cannot deploy a Gateway, retrying", { gateway: key, failures, error: asError(error) });
    if (failures >= LASTING_FAILURES || isLasting(error)) this.#report(key, messageOf(error));
  }

  #report(fleet: string, error: string | undefined): void {
    if (this.#reported.get(fleet) === error) return;
    if (error === undefined) this.#reported.delete(fleet);
    else this.#reported.set(fleet, error);
    this.#options.report(fleet, error);
  }
}

/** Whether Gateways share a fleet. */
function isShared(fleet: string): boolean {
  return classOfFleet(fleet) !== undefined;
}

/** Of a fleet whose class is gone. */
function goneOf(key: string): FleetDeployment {
  return { key, action: "remove", objects: [] };
}

class TakenError extends Error {}

/** Whether only a change in the cluster can make a retry succeed. */
function isLasting(error: unknown): boolean {
  const cause = error instanceof Error ? error.cause : undefined;
  if (cause instanceof TakenError) return true;
  return cause instanceof KubeError && cause.status >= 400 && cause.status < 500 && ![409, 429].includes(cause.status);
}

function isWorkload(kind: string): boolean {
  return kind === "Deployment" || kind === "DaemonSet";
}

function pathOf({ kind, metadata }: Pick<OwnedObject, "kind" | "metadata">): string {
  return resourcePath(RESOURCES[kind], metadata.namespace, metadata.name);
}

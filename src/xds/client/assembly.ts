/**
 * The configuration of a proxy, assembled from resources. Routes remain in the text form in which they arrive: no route is parsed
 * here, and only listeners whose routes have changed are packed again.
 */
import type { Backend, Bind, Ir, Listener, TargetedPolicy, TcpRoute } from "../../ir/ir.ts";
import { parseJson } from "../../ir/json.ts";
import {
  digestOf,
  type PackedAddresses,
  type PackedIr,
  type PackedRoutes,
  type PackedText,
  type PackedTexts,
  TextPacker,
} from "../../ir/packed-ir.ts";
import { compareRoutes } from "../../ir/precedence.ts";
import { ADDRESS_TYPE, RESOURCE_TYPE } from "../resources.ts";
import { type DeltaResponse, type NamedResource, readPart } from "./messages.ts";

/** Listeners come and go. */
const MAX_TEXTS = 10_000;
const INTERNAL = '"type":"internal"';

/** A resource as it was received. */
interface Received extends PackedText {
  readonly internal: boolean;
  readonly name: string;
  readonly version: string;
  readonly kind: string;
  readonly owner: string;
  /** Of all kinds but routes. */
  value?: unknown;
}

/** The routes of one listener. */
interface Owner {
  readonly routes: Map<string, Received>;
  readonly packer: TextPacker;
  /** undefined: to be packed again. */
  packed: PackedRoutes | undefined;
}

export class Assembly {
  readonly #types: Readonly<Record<typeof RESOURCE_TYPE | typeof ADDRESS_TYPE, Map<string, Received>>> = {
    [RESOURCE_TYPE]: new Map(),
    [ADDRESS_TYPE]: new Map(),
  };
  readonly #owners = new Map<string, Owner>();
  readonly #addressPackers = { service: new TextPacker(), workload: new TextPacker() };
  /** Kinds and owners. */
  readonly #texts = new Map<string, string>();
  /** undefined: to be packed again. */
  #addresses: PackedAddresses | undefined;

  /** Another assembly with the same resources. */
  copy(): Assembly {
    const copy = new Assembly();
    for (const type of [RESOURCE_TYPE, ADDRESS_TYPE] as const)
      for (const resource of this.#types[type].values()) copy.#add(type, resource);
    return copy;
  }

  /** Names and versions, to resume with. */
  *versions(type: typeof RESOURCE_TYPE | typeof ADDRESS_TYPE): Iterable<readonly [string, string]> {
    for (const [name, { version }] of this.#types[type]) yield [name, version];
  }

  /** Takes the responses of a batch. Returns whether they have changed anything. Throws an Error for what it cannot read. */
  update(batch: readonly DeltaResponse[]): boolean {
    // All are read first, because a batch applies as a whole or not at all.
    const read = batch.map(({ typeUrl, resources, removed }) => {
      const type = ([RESOURCE_TYPE, ADDRESS_TYPE] as const).find((each) => each === typeUrl);
      if (type === undefined) throw new Error(`unknown type ${typeUrl}`);
      return { type, removed, received: resources.map((each) => this.#receive(each, type === ADDRESS_TYPE)) };
    });
    let changed = false;
    for (const { type, removed, received } of read) {
      const known = this.#types[type];
      if (type === ADDRESS_TYPE && removed.length + received.length > 0) this.#addresses = undefined;
      for (const name of removed) {
        const before = known.get(name);
        if (before === undefined) continue;
        known.delete(name);
        this.#forget(before);
        changed = true;
      }
      for (const resource of received) {
        const before = known.get(resource.name);
        if (before !== undefined) this.#forget(before);
        this.#add(type, resource);
        changed = true;
      }
    }
    return changed;
  }

  /** `customFunctions` are those of the proxy's own file. Throws an Error that names an invalid resource. */
  pack(customFunctions: string | undefined): PackedIr {
    const listeners = Map.groupBy(
      this.#parsedOf<Omit<Listener, "routes" | "tcpRoutes">>("listener"),
      ({ owner }) => owner,
    );
    const tcpRoutes = Map.groupBy(this.#parsedOf<TcpRoute>("tcpRoute"), ({ owner }) => owner);
    const listenersOf = (bind: string): Listener[] =>
      (listeners.get(bind) ?? [])
        .map(({ value }) => ({
          ...value,
          routes: [],
          tcpRoutes: (tcpRoutes.get(value.key) ?? []).map(({ value: route }) => route).sort(compareRoutes),
        }))
        .sort(byKey);
    const binds = this.#parsedOf<Omit<Bind, "listeners">>("bind").map(({ value }) => ({
      ...value,
      listeners: listenersOf(value.key),
    }));
    const values = <Value extends { readonly key: string }>(kind: string): Value[] =>
      this.#parsedOf<Value>(kind)
        .map(({ value }) => value)
        .sort(byKey);
    const frame: Ir = {
      binds: binds.sort(byKey),
      routeGroups: [],
      backends: values<Backend>("backend"),
      services: [],
      workloads: [],
      targeted: values<TargetedPolicy>("policy"),
      ...(customFunctions !== undefined && { customFunctions }),
    };
    this.#addresses ??= { services: this.#packedAddresses("service"), workloads: this.#packedAddresses("workload") };
    const routes = frame.binds.flatMap((bind) => bind.listeners.map(({ key }) => this.#packed(key)));
    return { frame, routes, addresses: this.#addresses, internal: this.#usesInternal() };
  }

  /** Whether a route may have an `internal` backend. */
  #usesInternal(): boolean {
    for (const { routes } of this.#owners.values())
      for (const { internal } of routes.values()) if (internal) return true;
    return false;
  }

  #packed(listener: string): PackedRoutes {
    const owner = this.#ownerOf(listener);
    owner.packed ??= { owner: listener, ...owner.packer.pack([...owner.routes.values()].sort(byName)) };
    return owner.packed;
  }

  #parsedOf<Value>(kind: string): { readonly owner: string; readonly value: Value }[] {
    const found = [];
    for (const resource of this.#types[RESOURCE_TYPE].values())
      if (resource.kind === kind) found.push({ owner: resource.owner, value: parsed(resource) as Value });
    return found;
  }

  #packedAddresses(kind: "service" | "workload"): PackedTexts {
    const found = [...this.#types[ADDRESS_TYPE].values()].filter((address) => address.kind === kind);
    return this.#addressPackers[kind].pack(found.sort(byName));
  }

  #receive(resource: NamedResource, isAddress: boolean): Received {
    const { name, version } = resource;
    const { kind, owner, json } = readPart(resource, isAddress);
    // Copied, into memory that small buffers share: a slice would keep the whole response.
    const text = Buffer.from(json);
    const digest = Buffer.from(digestOf(text));
    const internal = kind === "route" && text.includes(INTERNAL);
    return { name, version, kind: this.#shared(kind), owner: this.#shared(owner), text, digest, internal };
  }

  /** Thousands of resources have the same owner: they share one string. */
  #shared(text: string): string {
    const known = this.#texts.get(text);
    if (this.#texts.size > MAX_TEXTS) this.#texts.clear();
    if (known === undefined) this.#texts.set(text, text);
    return known ?? text;
  }

  #add(type: typeof RESOURCE_TYPE | typeof ADDRESS_TYPE, resource: Received): void {
    this.#types[type].set(resource.name, resource);
    if (resource.kind !== "route") return;
    const owner = this.#ownerOf(resource.owner);
    owner.routes.set(resource.name, resource);
    owner.packed = undefined;
  }

  #forget({ kind, owner: key, name }: Received): void {
    if (kind !== "route") return;
    const owner = this.#ownerOf(key);
    owner.routes.delete(name);
    owner.packed = undefined;
    if (owner.routes.size === 0) this.#owners.delete(key);
  }

  #ownerOf(key: string): Owner {
    let owner = this.#owners.get(key);
    if (owner === undefined) {
      owner = { routes: new Map(), packer: new TextPacker(), packed: undefined };
      this.#owners.set(key, owner);
    }
    return owner;
  }
}

function parsed(resource: Received): unknown {
  try {
    resource.value ??= parseJson(Buffer.from(resource.text).toString("utf8"));
    return resource.value;
  } catch (error) {
    throw new Error(`resource ${resource.name} is not JSON`, { cause: error });
  }
}

function byName(a: Received, b: Received): number {
  return compare(a.name, b.name);
}

function byKey(a: { readonly key: string }, b: { readonly key: string }): number {
  return compare(a.key, b.key);
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

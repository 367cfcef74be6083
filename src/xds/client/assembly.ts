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
import { FormerResources, type Overrides, type Received as ReceivedResource } from "./former-resources.ts";
import { type DeltaResponse, type NamedResource, readPart } from "./messages.ts";

/** Listeners come and go. */
const MAX_TEXTS = 10_000;
const INTERNAL = '"type":"internal"';

interface Received extends PackedText, ReceivedResource {
  readonly internal: boolean;
  readonly version: string;
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
  readonly #former = new FormerResources<Received>({
    get: (name) => this.#types[RESOURCE_TYPE].get(name) ?? this.#types[ADDRESS_TYPE].get(name),
    ofKind: (kind) => [...this.#types[RESOURCE_TYPE].values()].filter((resource) => resource.kind === kind),
    parse: parsed,
  });
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
        this.#former.note(name, before);
        known.delete(name);
        this.#forget(before);
        changed = true;
      }
      for (const resource of received) {
        const before = known.get(resource.name);
        this.#former.note(resource.name, before);
        if (before !== undefined) this.#forget(before);
        this.#add(type, resource);
        changed = true;
      }
    }
    return changed;
  }

  /** What was packed last has been applied. */
  accept(): void {
    this.#former.accept();
  }

  /**
   * `customFunctions` are those of the proxy's own file. `heldBack`: keys of Gateways that keep what was applied last. Throws an Error that names an
   * invalid resource.
   */
  pack(customFunctions: string | undefined, heldBack: ReadonlySet<string> = new Set()): PackedIr {
    const overrides = this.#former.take(heldBack);
    const parsedOf = <Value>(kind: string): { readonly owner: string; readonly value: Value }[] =>
      this.#allOf(RESOURCE_TYPE, overrides, kind).map((resource) => ({
        owner: resource.owner,
        value: parsed(resource) as Value,
      }));
    const listeners = Map.groupBy(parsedOf<Omit<Listener, "routes" | "tcpRoutes">>("listener"), ({ owner }) => owner);
    const tcpRoutes = Map.groupBy(parsedOf<TcpRoute>("tcpRoute"), ({ owner }) => owner);
    const listenersOf = (bind: string): Listener[] =>
      (listeners.get(bind) ?? [])
        .map(({ value }) => ({
          ...value,
          routes: [],
          tcpRoutes: (tcpRoutes.get(value.key) ?? []).map(({ value: route }) => route).sort(compareRoutes),
        }))
        .sort(byKey);
    // Only what is held back has a port without listeners.
    const binds = parsedOf<Omit<Bind, "listeners">>("bind")
      .map(({ value }) => ({ ...value, listeners: listenersOf(value.key) }))
      .filter(({ listeners }) => listeners.length > 0 || heldBack.size === 0);
    const values = <Value extends { readonly key: string }>(kind: string): Value[] =>
      parsedOf<Value>(kind)
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
    const routes = frame.binds.flatMap((bind) => bind.listeners.map(({ key }) => this.#packed(key, overrides)));
    return { frame, routes, addresses: this.#packedAddresses(overrides), internal: this.#usesInternal() };
  }

  /** Whether a route may have an `internal` backend. */
  #usesInternal(): boolean {
    for (const { routes } of this.#owners.values())
      for (const { internal } of routes.values()) if (internal) return true;
    return false;
  }

  #packed(listener: string, overrides: Overrides<Received>): PackedRoutes {
    const owner = this.#ownerOf(listener);
    const routes = overridden(owner.routes, overrides, ({ kind, owner }) => kind === "route" && owner === listener);
    if (routes !== undefined) return { owner: listener, ...owner.packer.pack(routes.sort(byName)) };
    owner.packed ??= { owner: listener, ...owner.packer.pack([...owner.routes.values()].sort(byName)) };
    return owner.packed;
  }

  #packedAddresses(overrides: Overrides<Received>): PackedAddresses {
    const pack = (kind: "service" | "workload"): PackedTexts =>
      this.#addressPackers[kind].pack(this.#allOf(ADDRESS_TYPE, overrides, kind).sort(byName));
    const packed = overrides.size > 0 ? undefined : this.#addresses;
    const addresses = packed ?? { services: pack("service"), workloads: pack("workload") };
    if (overrides.size === 0) this.#addresses = addresses;
    return addresses;
  }

  /** All of a kind, with these in place of the newest. */
  #allOf(type: typeof RESOURCE_TYPE | typeof ADDRESS_TYPE, overrides: Overrides<Received>, kind: string): Received[] {
    const isWanted = (resource: Received): boolean => resource.kind === kind;
    return overridden(this.#types[type], overrides, isWanted) ?? [...this.#types[type].values()].filter(isWanted);
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

/** Those that are wanted, with the overrides in place of the newest; undefined: nothing is overridden. */
function overridden(
  newest: ReadonlyMap<string, Received>,
  overrides: Overrides<Received>,
  isWanted: (resource: Received) => boolean,
): Received[] | undefined {
  if (overrides.size === 0) return undefined;
  const others = [...newest.values()].filter((resource) => !overrides.has(resource.name) && isWanted(resource));
  return [
    ...others,
    ...[...overrides.values()].filter((resource): resource is Received => resource !== undefined && isWanted(resource)),
  ];
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

/**
 * The state of one gateway as it is sent: every resource encoded once, for all its proxies. A resource that is the same object as
 * in the state before keeps its bytes, so a change of one route among thousands encodes one route.
 */
import { hash } from "node:crypto";
import { create, toBinary } from "@bufbuild/protobuf";
import { AddressSchema, ResourceSchema } from "../../gen/tracegate/dev/config/v1/config_pb.ts";
import { jsonOf } from "../../ir/json.ts";
import { ADDRESS_TYPE, type Address, type GatewayState, RESOURCE_TYPE, type Resource } from "../resources.ts";

export type TypeUrl = typeof RESOURCE_TYPE | typeof ADDRESS_TYPE;
export const TYPES: readonly TypeUrl[] = [ADDRESS_TYPE, RESOURCE_TYPE];

interface Encoded {
  readonly source: Resource | Address;
  /** Digest of the bytes: the same in every replica of the controller, and after its restart. */
  readonly version: string;
  readonly bytes: Uint8Array;
  /** Digest of type, name and version. */
  readonly mark: Buffer;
}

/** Resources of one type by name. */
interface Resources extends ReadonlyMap<string, Encoded> {}

export interface EncodedState {
  readonly types: Readonly<Record<TypeUrl, Resources>>;
  /** The marks of all resources combined by XOR, so that a change of one needs no pass over all. */
  readonly mark: Buffer;
  /** The version of the whole state: it identifies its resources and their versions. */
  readonly version: string;
  /** Keys of the Gateways that it is made of, which have no part in the version. */
  readonly gateways: readonly string[];
}

/** Bytes of the digests: two different resources of one name never share a version. */
const VERSION_BYTES = 12;

/** `before`: the state that this one replaces. */
export function encodeState(
  state: GatewayState,
  before?: EncodedState,
  gateways: readonly string[] = [],
): EncodedState {
  const mark = Buffer.from(before?.mark ?? Buffer.alloc(VERSION_BYTES));
  const types = {
    [RESOURCE_TYPE]: encodeAll(RESOURCE_TYPE, state.resources, before, encodeResource, mark),
    [ADDRESS_TYPE]: encodeAll(ADDRESS_TYPE, state.addresses, before, encodeAddress, mark),
  };
  return { types, mark, version: mark.toString("base64url"), gateways };
}

/** Keeps `mark` up to date. Returns the map of `before` if nothing differs, so that unchanged types are compared at no cost. */
function encodeAll<Source extends Resource | Address>(
  type: TypeUrl,
  sources: ReadonlyMap<string, Source>,
  before: EncodedState | undefined,
  encode: (source: Source) => Uint8Array,
  mark: Buffer,
): Resources {
  const former: Resources = before?.types[type] ?? new Map();
  const all = new Map<string, Encoded>();
  let kept = 0;
  let changed = false;
  /** The same content in another object. */
  let renewed = false;
  for (const [name, source] of sources) {
    const known = former.get(name);
    if (known !== undefined) kept++;
    if (known?.source === source) {
      all.set(name, known);
      continue;
    }
    const encoded = encodeOne(type, name, source, encode(source), known);
    all.set(name, encoded);
    if (encoded.version === known?.version) {
      renewed = true;
      continue;
    }
    changed = true;
    if (known !== undefined) combine(mark, known.mark);
    combine(mark, encoded.mark);
  }
  if (kept < former.size) for (const [name, known] of former) if (!all.has(name)) combine(mark, known.mark);
  return changed || renewed || kept < former.size ? all : former;
}

/** Another object with the same content keeps the bytes of the former one. */
function encodeOne(
  type: TypeUrl,
  name: string,
  source: Resource | Address,
  bytes: Uint8Array,
  known: Encoded | undefined,
): Encoded {
  const version = hash("sha256", bytes, "buffer").subarray(0, VERSION_BYTES).toString("base64url");
  if (known?.version === version) return { ...known, source };
  const mark = hash("sha256", `${type} ${name} ${version}`, "buffer").subarray(0, VERSION_BYTES);
  return { source, version, bytes, mark };
}

function combine(mark: Buffer, other: Buffer): void {
  for (let i = 0; i < VERSION_BYTES; i++) mark[i] = (mark[i] ?? 0) ^ (other[i] ?? 0);
}

function encodeResource(resource: Resource): Uint8Array {
  const { kind } = resource;
  const message = (part: unknown, owner = ""): Uint8Array =>
    toBinary(ResourceSchema, create(ResourceSchema, { kind, owner, json: Buffer.from(jsonOf(part)) }));
  switch (resource.kind) {
    case "bind":
      return message(resource.bind);
    case "listener":
      return message(resource.listener, resource.bind);
    case "route":
    case "tcpRoute":
      return message(resource.route, resource.listener);
    case "backend":
      return message(resource.backend);
    case "policy":
      return message(resource.policy);
  }
}

function encodeAddress(address: Address): Uint8Array {
  const { kind } = address;
  const part = address.kind === "service" ? address.service : address.workload;
  return toBinary(AddressSchema, create(AddressSchema, { kind, json: Buffer.from(jsonOf(part)) }));
}

/** What one proxy has to be sent, type by type. */
export interface Difference {
  readonly changed: Readonly<Record<TypeUrl, readonly string[]>>;
  readonly removed: Readonly<Record<TypeUrl, readonly string[]>>;
}

/** `known`: name to version of what the proxy has. */
export function differenceTo(
  { types }: EncodedState,
  known: Readonly<Record<TypeUrl, ReadonlyMap<string, { readonly version: string }>>>,
): Difference {
  const changed = (type: TypeUrl): string[] => {
    if (types[type] === known[type]) return [];
    const names = [];
    for (const [name, { version }] of types[type]) if (known[type].get(name)?.version !== version) names.push(name);
    return names;
  };
  const removed = (type: TypeUrl): string[] =>
    types[type] === known[type] ? [] : [...known[type].keys()].filter((name) => !types[type].has(name));
  return {
    changed: { [ADDRESS_TYPE]: changed(ADDRESS_TYPE), [RESOURCE_TYPE]: changed(RESOURCE_TYPE) },
    removed: { [ADDRESS_TYPE]: removed(ADDRESS_TYPE), [RESOURCE_TYPE]: removed(RESOURCE_TYPE) },
  };
}

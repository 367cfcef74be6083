/**
 * The messages of the stream as a proxy reads and writes them, field by field (proto/envoy/service/discovery/v3 and
 * proto/tracegate/dev/config/v1). Generated ones take 13 MB of resident memory in the main thread of every proxy, these 1 MB.
 */

import { BinaryReader, BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { HELD_BACK_TYPE, type HeldBack } from "../resources.ts";

/** A DeltaDiscoveryRequest. */
interface DeltaRequest {
  readonly typeUrl: string;
  /** In the first request of a stream. */
  readonly node?: ProxyNode;
  /** In the first request of a type. */
  readonly subscribe?: readonly string[];
  readonly initialVersions?: Iterable<readonly [name: string, version: string]>;
  /** Of the response that this one acknowledges or rejects. */
  readonly nonce?: string;
  /** Why that response was rejected; absent: it was not. */
  readonly error?: string;
  /** The Gateways for which it was rejected; for the others it was applied. */
  readonly heldBack?: readonly HeldBack[] | undefined;
}

export interface ProxyNode {
  readonly id: string;
  readonly cluster: string;
  readonly metadata: Readonly<Record<string, string>>;
}

/** A DeltaDiscoveryResponse. */
export interface DeltaResponse {
  /** The version of the whole state; empty: more responses of the same batch follow. */
  version: string;
  typeUrl: string;
  nonce: string;
  readonly resources: NamedResource[];
  readonly removed: string[];
}

/** A resource of a response. */
export interface NamedResource {
  name: string;
  version: string;
  /** Encoded: `readPart` reads it. */
  payload: Uint8Array;
}

/** A Resource or an Address of tracegate.dev.config.v1. */
interface RawResource {
  kind: string;
  owner: string;
  json: Uint8Array;
}

/** INTERNAL; the message says more. */
const REJECTED = 13;

export function writeRequest(request: DeltaRequest): Uint8Array {
  const { typeUrl, node, subscribe, initialVersions, nonce, error, heldBack = [] } = request;
  const writer = new BinaryWriter();
  if (node !== undefined) {
    writer.tag(1, WireType.LengthDelimited).fork();
    string(writer, 1, node.id);
    string(writer, 2, node.cluster);
    // google.protobuf.Struct: fields = 1, a map of Value, whose string_value = 3.
    writer.tag(3, WireType.LengthDelimited).fork();
    for (const [key, value] of Object.entries(node.metadata)) {
      writer.tag(1, WireType.LengthDelimited).fork();
      string(writer, 1, key);
      writer.tag(2, WireType.LengthDelimited).fork();
      string(writer, 3, value);
      writer.join().join();
    }
    writer.join().join();
  }
  string(writer, 2, typeUrl);
  for (const name of subscribe ?? []) string(writer, 3, name);
  for (const [name, version] of initialVersions ?? []) {
    writer.tag(5, WireType.LengthDelimited).fork();
    string(writer, 1, name);
    string(writer, 2, version);
    writer.join();
  }
  if (nonce !== undefined) string(writer, 6, nonce);
  if (error !== undefined) {
    writer.tag(7, WireType.LengthDelimited).fork();
    writer.tag(1, WireType.Varint).int32(REJECTED);
    string(writer, 2, error);
    for (const { gateway, reason } of heldBack) {
      // google.protobuf.Any: type_url = 1, value = 2.
      writer.tag(3, WireType.LengthDelimited).fork();
      string(writer, 1, HELD_BACK_TYPE);
      writer.tag(2, WireType.LengthDelimited).fork();
      string(writer, 1, gateway);
      string(writer, 2, reason);
      writer.join().join();
    }
    writer.join();
  }
  return writer.finish();
}

function string(writer: BinaryWriter, field: number, text: string): void {
  writer.tag(field, WireType.LengthDelimited).string(text);
}

/** Throws an Error if the bytes are not such a message. */
export function readResponse(bytes: Uint8Array): DeltaResponse {
  const response: DeltaResponse = { version: "", typeUrl: "", nonce: "", resources: [], removed: [] };
  read(new BinaryReader(bytes), bytes.length, (field, reader) => {
    if (field === 1) response.version = reader.string();
    else if (field === 2) response.resources.push(readResource(reader));
    else if (field === 4) response.typeUrl = reader.string();
    else if (field === 5) response.nonce = reader.string();
    else if (field === 6) response.removed.push(reader.string());
    else return false;
    return true;
  });
  return response;
}

function readResource(reader: BinaryReader): NamedResource {
  const resource: NamedResource = { name: "", version: "", payload: new Uint8Array() };
  read(reader, reader.uint32(), (field) => {
    if (field === 1) resource.version = reader.string();
    else if (field === 2)
      read(reader, reader.uint32(), (inner) => {
        // google.protobuf.Any: the type is that of the response.
        if (inner !== 2) return false;
        resource.payload = reader.bytes();
        return true;
      });
    else if (field === 3) resource.name = reader.string();
    else return false;
    return true;
  });
  return resource;
}

/** Throws an Error if the bytes are not such a message. */
export function readPart({ payload }: NamedResource, isAddress: boolean): RawResource {
  const part: RawResource = { kind: "", owner: "", json: new Uint8Array() };
  const json = isAddress ? 2 : 4;
  read(new BinaryReader(payload), payload.length, (field, reader) => {
    if (field === 1) part.kind = reader.string();
    else if (field === json) part.json = reader.bytes();
    else if (field === 2) part.owner = reader.string();
    else return false;
    return true;
  });
  return part;
}

/** `take` reads the value of a field that it knows and returns true; others are skipped. */
function read(reader: BinaryReader, length: number, take: (field: number, reader: BinaryReader) => boolean): void {
  const end = reader.pos + length;
  while (reader.pos < end) {
    const [field, wireType] = reader.tag();
    if (!take(field, reader)) reader.skip(wireType);
  }
}

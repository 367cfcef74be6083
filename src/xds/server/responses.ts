import { create, toBinary } from "@bufbuild/protobuf";
import { AnySchema } from "@bufbuild/protobuf/wkt";
import { DeltaDiscoveryResponseSchema, ResourceSchema } from "../../gen/envoy/service/discovery/v3/discovery_pb.ts";
import { ADDRESS_TYPE, RESOURCE_TYPE } from "../resources.ts";
import type { Difference, EncodedState, TypeUrl } from "./encoded-state.ts";

/** Approximate bytes of the resources in one response, far below the 4 MiB that gRPC receivers accept by default. */
const MAX_RESPONSE = 512 * 1024;

/** A response before it is encoded. */
interface ResponseDraft {
  readonly type: TypeUrl;
  readonly names: readonly string[];
  readonly removed: readonly string[];
}

/**
 * The responses of one batch, which lead from what a proxy has to `state`. Addresses that are new come before the resources that
 * may refer to them, and are removed after those. The last response alone has `system_version_info`: a proxy applies all of a
 * batch at once or nothing. Responses are encoded one at a time, as the proxy takes them.
 */
export function* responsesOf(
  state: EncodedState,
  difference: Difference,
  nonceOf: (type: TypeUrl) => string,
): Generator<Buffer> {
  const parts = partsOf(state, difference);
  for (const [index, { type, names, removed }] of parts.entries()) {
    const last = index === parts.length - 1;
    const resources = names.flatMap((name) => {
      const encoded = state.types[type].get(name);
      if (encoded === undefined) return [];
      const { version, bytes: value } = encoded;
      return [create(ResourceSchema, { name, version, resource: create(AnySchema, { typeUrl: type, value }) })];
    });
    const message = create(DeltaDiscoveryResponseSchema, {
      systemVersionInfo: last ? state.version : "",
      resources,
      typeUrl: type,
      nonce: nonceOf(type),
      removedResources: [...removed],
    });
    yield Buffer.from(toBinary(DeltaDiscoveryResponseSchema, message));
  }
}

function partsOf(state: EncodedState, { changed, removed }: Difference): ResponseDraft[] {
  const parts = [
    ...chunks(state, ADDRESS_TYPE, changed[ADDRESS_TYPE]),
    ...chunks(state, RESOURCE_TYPE, changed[RESOURCE_TYPE], removed[RESOURCE_TYPE]),
    ...chunks(state, ADDRESS_TYPE, [], removed[ADDRESS_TYPE]),
  ];
  // Even a proxy that already has the whole state needs a response, which tells it so.
  return parts.length > 0 ? parts : [{ type: RESOURCE_TYPE, names: [], removed: [] }];
}

/** The last one has what is removed. */
function* chunks(
  state: EncodedState,
  type: TypeUrl,
  all: readonly string[],
  removed: readonly string[] = [],
): Generator<ResponseDraft> {
  let names: string[] = [];
  let size = 0;
  for (const name of all) {
    const bytes = (state.types[type].get(name)?.bytes.length ?? 0) + name.length;
    if (size > 0 && size + bytes > MAX_RESPONSE) {
      yield { type, names, removed: [] };
      names = [];
      size = 0;
    }
    names.push(name);
    size += bytes;
  }
  if (names.length > 0 || removed.length > 0) yield { type, names, removed };
}

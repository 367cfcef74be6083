import type { PackedIr } from "../../../src/ir/packed-ir.ts";
import { Assembly } from "../../../src/xds/client/assembly.ts";
import { ADDRESS_TYPE, type GatewayState, RESOURCE_TYPE } from "../../../src/xds/resources.ts";
import { encodeState } from "../../../src/xds/server/encoded-state.ts";

/** A state as a proxy has it after it went through the messages of the stream. */
export function packState(state: GatewayState): PackedIr {
  const { types } = encodeState(state);
  const assembly = new Assembly();
  assembly.update(
    ([RESOURCE_TYPE, ADDRESS_TYPE] as const).map((typeUrl) => ({
      version: "",
      nonce: "",
      typeUrl,
      resources: [...types[typeUrl]].map(([name, { version, bytes }]) => ({
        name,
        version,
        payload: bytes,
      })),
      removed: [],
    })),
  );
  return assembly.pack(undefined);
}

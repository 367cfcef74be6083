import assert from "node:assert/strict";
import { test } from "node:test";
import { stateOf } from "../../../test/helpers/xds.ts";
import { ADDRESS_TYPE, type GatewayState, RESOURCE_TYPE } from "../resources.ts";
import { differenceTo, encodeState } from "./encoded-state.ts";

function state(routes: readonly string[], before?: GatewayState, body = ""): GatewayState {
  const policies = { directResponse: { status: 200, body } };
  const listeners = [{ protocol: "HTTP", routes: routes.map((name) => ({ name, policies })) }];
  return stateOf({ binds: [{ port: 0, listeners }] }, before);
}

test("a version depends on the resources alone, not on their history", () => {
  const direct = encodeState(state(["a", "b"]));
  const first = state(["a", "c"]);
  const second = state(["a"], first);
  const third = state(["a", "b"], second);
  const detour = encodeState(third, encodeState(second, encodeState(first)));
  assert.equal(detour.version, direct.version);
  const reversed: GatewayState = {
    resources: new Map([...state(["a", "b"]).resources].reverse()),
    addresses: new Map(),
  };
  assert.equal(encodeState(reversed).version, direct.version);
  assert.notEqual(encodeState(state(["a", "b"], undefined, "other")).version, direct.version);
  assert.notEqual(encodeState(state(["a"])).version, direct.version);
});

test("unchanged resources keep their bytes, and a type without changes is compared at no cost", () => {
  const one = state(["a", "b"]);
  const before = encodeState(one);
  const after = encodeState(state(["a", "c"], one), before);
  const route = [...one.resources.keys()].find((name) => name.endsWith("/a")) ?? "";
  assert.equal(after.types[RESOURCE_TYPE].get(route)?.bytes, before.types[RESOURCE_TYPE].get(route)?.bytes);
  assert.equal(after.types[ADDRESS_TYPE], before.types[ADDRESS_TYPE]);
  assert.equal(encodeState(one, before).types[RESOURCE_TYPE], before.types[RESOURCE_TYPE]);
  // Equal content in new objects, as after a restart of the controller.
  const again = encodeState(state(["a", "b"]), before);
  assert.equal(again.version, before.version);
  assert.equal(again.types[RESOURCE_TYPE].get(route)?.bytes, before.types[RESOURCE_TYPE].get(route)?.bytes);
});

test("the difference has new, changed and removed resources", () => {
  const known = encodeState(state(["a", "b"])).types;
  const now = encodeState(state(["b", "c"]));
  const { changed, removed } = differenceTo(now, known);
  const last = (names: readonly string[]): (string | undefined)[] => names.map((name) => name.split("/").at(-1));
  assert.deepEqual(last(changed[RESOURCE_TYPE]).sort(), ["b", "c"], "b too is at another place in the file");
  assert.deepEqual(last(removed[RESOURCE_TYPE]), ["a"]);
  const nothing = differenceTo(now, now.types);
  assert.deepEqual([nothing.changed[RESOURCE_TYPE], nothing.removed[RESOURCE_TYPE]], [[], []]);
});

/** `frontend` of TracegatePolicies: settings of client connections, for the binds of a Gateway. */
import { nameOfKey } from "../../../base/object-key.ts";
import type { Frontend } from "../../../ir/ir.ts";
import { type ObjectRef, refKey } from "../../../kube/keys.ts";
import type { FrontendInput } from "../../../translation/schema/frontend.ts";
import { defineQuery, type Pair, type Read } from "../../graph/graph.ts";
import { callContext } from "./calls.ts";
import { translateFrontendInput } from "./frontend-input.ts";
import { policyModel } from "./model.ts";
import type { Callee } from "./names.ts";
import { inputsAt, withoutLost } from "./parts.ts";

interface FrontendModel {
  readonly frontend: Frontend;
  /** What listeners with TLS have in common. */
  readonly tls: NonNullable<FrontendInput["tls"]>;
}

/**
 * Of a Gateway and a port. Policies of the whole Gateway, replaced field by field by those of its listeners on that port;
 * of two listeners by those of the first.
 */
export const frontendOf = defineQuery<FrontendModel, Pair>("frontendOf", (read, [gateway, port]) => {
  const ref: ObjectRef = { kind: "Gateway", ...nameOfKey(gateway) };
  const listeners = read.get("Gateway", gateway)?.spec.listeners ?? [];
  const sections = listeners
    .filter((each) => String(each.port) === port)
    .map((each) => refKey({ ...ref, section: each.name }));
  const whole = levelOf(read, refKey(ref));
  // What is assigned later replaces what was assigned before.
  const listenersLastFirst = sections.map((each) => levelOf(read, each)).reverse();
  const input: FrontendInput = {};
  for (const { fields } of [whole, ...listenersLastFirst]) Object.assign(input, fields);
  for (const { override } of [...listenersLastFirst, whole]) Object.assign(input, override);
  const callees = [whole, ...listenersLastFirst].flatMap((level) => level.callees);
  const { frontend } = translateFrontendInput(
    input,
    callContext(read, ref.namespace, callees, () => {}, []),
  );
  return { frontend, tls: input.tls ?? {} };
});

interface Level {
  readonly fields: FrontendInput;
  readonly override: FrontendInput;
  readonly callees: readonly Callee[];
}

/** What policies attach to one target. */
function levelOf(read: Read, target: string): Level {
  const attached = inputsAt(read, target);
  const inputs = attached.inputs.filter(({ sections }) => sections.includes("frontend"));
  const level = { fields: {}, override: {} };
  for (const { key, override } of inputs) {
    const fields = withoutLost(read.query(policyModel, key)?.frontend ?? {}, attached, key, "frontend");
    Object.assign(override ? level.override : level.fields, fields);
  }
  return { ...level, callees: inputs.flatMap(({ callees }) => callees) };
}

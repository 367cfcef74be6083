/** `frontend` of TracegatePolicies: settings of client connections, for the binds of a Gateway. */
import { nameOfKey } from "../../../base/object-key.ts";
import type { Frontend, FrontendOrigins } from "../../../ir/ir.ts";
import { type ObjectRef, refKey } from "../../../kube/keys.ts";
import { translateCalling, translateFrontend } from "../../../translation/frontend.ts";
import type { FrontendInput } from "../../../translation/schema/frontend.ts";
import { defineQuery, type Pair, type Read } from "../../graph/graph.ts";
import { callContext } from "./calls.ts";
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
  const layers = [whole, ...listenersLastFirst].map(({ fields }) => fields);
  const overrides = [...listenersLastFirst, whole].map(({ override }) => override);
  const { input, origins } = [...layers, ...overrides].reduce(replaced, NO_FIELDS);
  const callees = [whole, ...listenersLastFirst].flatMap((level) => level.callees);
  const context = callContext(read, ref.namespace, callees, () => {}, []);
  return { frontend: translateFrontend(input, translateCalling(input, context), origins), tls: input.tls ?? {} };
});

/** Fields, and where they were written. */
interface Fields {
  readonly input: FrontendInput;
  readonly origins: FrontendOrigins;
}

const NO_FIELDS: Fields = { input: {}, origins: {} };

function replaced(outer: Fields, inner: Fields): Fields {
  return { input: { ...outer.input, ...inner.input }, origins: { ...outer.origins, ...inner.origins } };
}

interface Level {
  readonly fields: Fields;
  readonly override: Fields;
  readonly callees: readonly Callee[];
}

/** What policies attach to one target. */
function levelOf(read: Read, target: string): Level {
  const attached = inputsAt(read, target);
  const inputs = attached.inputs.filter(({ sections }) => sections.includes("frontend"));
  const level = { fields: NO_FIELDS, override: NO_FIELDS };
  for (const { key, override } of inputs) {
    const { frontend = {}, frontendOrigins = {} } = read.query(policyModel, key) ?? {};
    const part = override ? "override" : "fields";
    level[part] = replaced(level[part], {
      input: withoutLost(frontend, attached, key, "frontend"),
      origins: withoutLost(frontendOrigins, attached, key, "frontend"),
    });
  }
  return { ...level, callees: inputs.flatMap(({ callees }) => callees) };
}

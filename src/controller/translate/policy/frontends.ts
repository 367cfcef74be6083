/** `frontend` of TracegatePolicies: settings of client connections, for the binds of a Gateway. */
import { nameOfKey } from "../../../base/object-key.ts";
import type { Frontend, FrontendOrigins } from "../../../ir/ir.ts";
import { type ObjectRef, refKey } from "../../../kube/keys.ts";
import { originsOfFrontend, translateCalling, translateFrontend } from "../../../translation/frontend.ts";
import type { FrontendInput } from "../../../translation/schema/frontend.ts";
import { defineQuery, type Pair, type Read } from "../../graph/graph.ts";
import { mergingParameters } from "../model/fleets.ts";
import type { Problem } from "../model/model.ts";
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

/**
 * Why a port of a Gateway cannot be shared with other Gateways: a policy has settings of connections, which a port has only once. They are
 * refused as a whole, because a rule about clients must not be ignored.
 */
export const sharedPortProblem = defineQuery<Problem | undefined, Pair>(
  "sharedPortProblem",
  (read, [gateway, port]) => {
    const { spec } = read.get("Gateway", gateway) ?? {};
    const ref: ObjectRef = { kind: "Gateway", ...nameOfKey(gateway) };
    const sections = (spec?.listeners ?? []).filter((each) => String(each.port) === port);
    const targets = [ref, ...sections.map(({ name }) => ({ ...ref, section: name }))].map(refKey);
    for (const { key, frontend, invalid } of targets.flatMap((target) => inputsAt(read, target).inputs)) {
      const { tls, ...others } = frontend;
      const written = Object.entries(others).flatMap(([field, value]) => (value === undefined ? [] : [field]));
      // The rest of `tls` is that of each listener.
      if (tls?.handshakeTimeout !== undefined) written.push("tls.handshakeTimeout");
      const [field] = [...written, ...invalid.frontend];
      if (field !== undefined)
        return {
          reason: "SharedPort",
          message: `TracegatePolicy ${key} sets frontend.${field} for port ${port}, which Gateways of class ${spec?.gatewayClassName} share; remove it; mergeGateways.frontend in the parameters of the class decides for all of them`,
        };
    }
    return undefined;
  },
);

/** The settings of the ports that the Gateways of a class share. Key: name of the class. */
export const sharedFrontend = defineQuery<Frontend>("sharedFrontend", (read, gatewayClass) => {
  const { key = "", frontend = {} } = read.query(mergingParameters, gatewayClass) ?? {};
  const object = { kind: "TracegateParameters", ...nameOfKey(key) };
  const origins = originsOfFrontend(frontend, { object, path: ["spec", "mergeGateways", "frontend"] });
  return translateFrontend(frontend, {}, origins);
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

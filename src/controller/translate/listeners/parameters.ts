/** The TracegateParameters that a Gateway or its class refers to. */
import { objectKey } from "../../../base/object-key.ts";
import { type Gateway, type GatewayClass, type ParametersReference, TRACEGATE_GROUP } from "../../../kube/objects.ts";
import { parseMergeGateways, parseParameters } from "../../crd/parameters.ts";
import { defineQuery, type Read } from "../../graph/graph.ts";
import type { Problem } from "../model/model.ts";

/** Why `spec.infrastructure.parametersRef` of a Gateway cannot be used. */
export function parametersProblem(read: Read, { metadata, spec }: Gateway): Problem | undefined {
  const reference = spec.infrastructure?.parametersRef;
  if (reference === undefined) return undefined;
  const key = objectKey({ ...metadata, name: reference.name });
  return (
    problemOf(read, { ...reference, namespace: metadata.namespace }) ??
    (parseMergeGateways(read.get("TracegateParameters", key)?.spec) && {
      reason: "InvalidParameters",
      message: `TracegateParameters ${key} has mergeGateways, which only those of a GatewayClass can have; remove it, or refer to them in spec.parametersRef of the class`,
    })
  );
}

/** Why `spec.parametersRef` of a class cannot be used. */
export function classParametersProblem(read: Read, { spec }: GatewayClass): Problem | undefined {
  return spec.parametersRef && problemOf(read, spec.parametersRef);
}

function problemOf(read: Read, { group, kind, name, namespace }: ParametersReference): Problem | undefined {
  const message =
    group !== TRACEGATE_GROUP || kind !== "TracegateParameters"
      ? `parametersRef has kind ${kind} of group "${group}"; expected TracegateParameters of group "${TRACEGATE_GROUP}"`
      : read.query(brokenParameters, objectKey({ name, ...(namespace !== undefined && { namespace }) }));
  return message === undefined ? undefined : { reason: "InvalidParameters", message };
}

/** What is wrong with TracegateParameters; undefined: nothing. */
const brokenParameters = defineQuery<string | undefined>("brokenParameters", (read, key) => {
  const parameters = read.get("TracegateParameters", key);
  if (parameters === undefined) return `TracegateParameters ${key} does not exist`;
  const parsed = parseParameters(parameters.spec);
  return parsed.ok ? undefined : `TracegateParameters ${key} is invalid: ${parsed.problems.join("; ")}`;
});

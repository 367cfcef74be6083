/** Whether the installed CRDs of the Gateway API are of a version that is supported: condition `SupportedVersion` of GatewayClasses. */
import { EXPERIMENTAL_GROUP, GATEWAY_GROUP } from "../../kube/objects.ts";
import { defineQuery } from "../graph/graph.ts";
import { isFalse, isTrue } from "../translate/model/conditions.ts";
import type { ConditionDraft } from "../translate/model/model.ts";

/** Annotation of the CRDs of a release, such as `v1.6.3`. */
const BUNDLE_VERSION = "gateway.networking.k8s.io/bundle-version";
const SUPPORTED = /^v1\.6\.\d+$/;
const SUPPORTED_NAME = "v1.6";

/** undefined: the CRDs are unknown, because the controller may not list them. If there is a GatewayClass, at least one CRD exists. */
export const supportedVersion = defineQuery<ConditionDraft | undefined>("supportedVersion", (read) => {
  const names = new Map<string, string[]>();
  for (const { metadata } of read.list("CustomResourceDefinition")) {
    const group = metadata.name.slice(metadata.name.indexOf(".") + 1);
    if (group !== GATEWAY_GROUP && group !== EXPERIMENTAL_GROUP) continue;
    const version = metadata.annotations?.[BUNDLE_VERSION] ?? "";
    names.set(version, [...(names.get(version) ?? []), metadata.name]);
  }
  if (names.size === 0) return undefined;
  const versions = [...names.keys()].sort();
  const wrong = versions.filter((version) => !SUPPORTED.test(version));
  if (wrong.length === 0)
    return isTrue(
      "SupportedVersion",
      "SupportedVersion",
      `The CRDs of the Gateway API have version ${versions.join(", ")}`,
    );
  const found = wrong.map((version) => {
    const crds = names.get(version)?.sort().join(", ");
    return version === "" ? `no version (annotation ${BUNDLE_VERSION}): ${crds}` : `${version}: ${crds}`;
  });
  return isFalse(
    "SupportedVersion",
    "UnsupportedVersion",
    `tracegate supports ${SUPPORTED_NAME} of the Gateway API; CRDs of other versions may lack fields or have unknown ones. Found ${found.join("; ")}`,
  );
});

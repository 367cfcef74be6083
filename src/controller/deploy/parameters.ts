import type { JsonObject } from "../base/manifest.ts";
import type { Parameters } from "../crd/parameters.ts";

/** Overlays by the kind that they change. */
export const OVERLAYS = {
  Deployment: "deployment",
  DaemonSet: "daemonSet",
  Service: "service",
  ServiceAccount: "serviceAccount",
  PodDisruptionBudget: "podDisruptionBudget",
  HorizontalPodAutoscaler: "horizontalPodAutoscaler",
} as const satisfies Readonly<Record<string, keyof Parameters>>;

/** The value of a field in the last of `layers` that sets it: parameters of the Gateway win over those of its class. */
export function lastOf<T>(layers: readonly Parameters[], pick: (layer: Parameters) => T | undefined): T | undefined {
  return layers.reduce<T | undefined>((value, layer) => pick(layer) ?? value, undefined);
}

/** What users wrote, which the API server has sent as JSON. */
export function asJsonObject(value: Readonly<Record<string, unknown>> | undefined): JsonObject {
  return (value ?? {}) as JsonObject;
}

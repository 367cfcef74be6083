import type { Json, JsonObject } from "./manifest.ts";

/** Changes to an object that tracegate makes: a strategic merge patch of its metadata and `spec`. */
export interface Overlay {
  readonly metadata?:
    | {
        readonly labels?: Readonly<Record<string, string>> | undefined;
        readonly annotations?: Readonly<Record<string, string>> | undefined;
      }
    | undefined;
  readonly spec?: Readonly<Record<string, unknown>> | undefined;
}

/** The part of TracegateParameters that shapes what is deployed (reference 6.1); defaults stand beside their use. */
export interface DeployParameters {
  readonly workload?: { readonly kind?: "Deployment" | "DaemonSet" | undefined } | undefined;
  readonly logging?: { readonly level?: string | undefined; readonly format?: "text" | "json" | undefined } | undefined;
  /** Merged into the configuration file of the proxies; the fields above win. */
  readonly rawConfig?: Readonly<Record<string, unknown>> | undefined;
  readonly image?:
    | {
        readonly registry?: string | undefined;
        readonly repository?: string | undefined;
        readonly tag?: string | undefined;
        readonly digest?: string | undefined;
        readonly pullPolicy?: string | undefined;
      }
    | undefined;
  /** As in a container. */
  readonly env?: readonly { readonly name: string }[] | undefined;
  readonly resources?: Readonly<Record<string, unknown>> | undefined;
  /** Seconds for which a proxy that stops serves at least and at most. */
  readonly shutdown?: { readonly min?: number | undefined; readonly max?: number | undefined } | undefined;
  readonly deployment?: Overlay | undefined;
  readonly daemonSet?: Overlay | undefined;
  readonly service?: Overlay | undefined;
  readonly serviceAccount?: Overlay | undefined;
  readonly podDisruptionBudget?: Overlay | undefined;
  readonly horizontalPodAutoscaler?: Overlay | undefined;
}

/** Overlays by the kind that they change. */
export const OVERLAYS = {
  Deployment: "deployment",
  DaemonSet: "daemonSet",
  Service: "service",
  ServiceAccount: "serviceAccount",
  PodDisruptionBudget: "podDisruptionBudget",
  HorizontalPodAutoscaler: "horizontalPodAutoscaler",
} as const satisfies Readonly<Record<string, keyof DeployParameters>>;

/** The value of a field in the last of `layers` that sets it: parameters of the Gateway win over those of its class. */
export function lastOf<T>(
  layers: readonly DeployParameters[],
  pick: (layer: DeployParameters) => T | undefined,
): T | undefined {
  return layers.reduce<T | undefined>((value, layer) => pick(layer) ?? value, undefined);
}

/** What users wrote, which the API server has sent as JSON. */
export function asJson(value: unknown): Json {
  return value as Json;
}

export function asJsonObject(value: Readonly<Record<string, unknown>> | undefined): JsonObject {
  return (value ?? {}) as JsonObject;
}

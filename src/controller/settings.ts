/** Settings of `tracegate controller`, from environment variables that the Helm chart sets. */
export interface ControllerSettings {
  /** `TRACEGATE_CONTROLLER_NAME`; default `tracegate.dev/gateway-controller`. */
  readonly controllerName: string;
  /** `TRACEGATE_CLASS_NAME`: the GatewayClass that the controller creates and manages; default `tracegate`. */
  readonly className: string;
  /** `POD_NAMESPACE`: where the controller runs; default `tracegate-system`. */
  readonly namespace: string;
  /** `POD_NAME`: its identity in the leader election; default the host name. */
  readonly podName: string;
  /** `TRACEGATE_LEADER_ELECTION`; default true. */
  readonly leaderElection: boolean;
  /** `LOG_LEVEL`; default `info`. */
  readonly logLevel: string;
  readonly ports: { readonly admin: number; readonly metrics: number; readonly health: number; readonly xds: number };
  readonly xds: {
    /** `TRACEGATE_XDS_SERVICE`: the Service that proxies connect to; default `tracegate`. */
    readonly service: string;
    /** `TRACEGATE_XDS_MODE`; default `tls`. */
    readonly mode: "tls" | "plaintext";
    /** `TRACEGATE_XDS_AUTH`: proxies must present a ServiceAccount token; default true. */
    readonly auth: boolean;
    /** Audience of the tokens: `tracegate`. */
    readonly audience: string;
  };
  readonly proxy: {
    /** `TRACEGATE_PROXY_IMAGE`: image of proxies, unless TracegateParameters name another. */
    readonly image: string;
    /** `TRACEGATE_PROXY_IMAGE_PULL_POLICY`; absent: the cluster's default. */
    readonly imagePullPolicy?: string;
    /** `TRACEGATE_PROXY_ADMIN_REVEAL`, `TRACEGATE_PROXY_ADMIN_QUIT`: false here is false for all proxies; default true. */
    readonly admin: { readonly reveal: boolean; readonly quit: boolean };
  };
}

const DEFAULT_IMAGE = "ghcr.io/tracegate/tracegate";

export function controllerSettings(
  env: Readonly<Record<string, string | undefined>>,
  version: string,
  hostname: string,
): ControllerSettings {
  const { TRACEGATE_PROXY_IMAGE_PULL_POLICY: imagePullPolicy } = env;
  return {
    controllerName: env.TRACEGATE_CONTROLLER_NAME ?? "tracegate.dev/gateway-controller",
    className: env.TRACEGATE_CLASS_NAME ?? "tracegate",
    namespace: env.POD_NAMESPACE ?? "tracegate-system",
    podName: env.POD_NAME ?? hostname,
    leaderElection: env.TRACEGATE_LEADER_ELECTION !== "false",
    logLevel: env.LOG_LEVEL ?? "info",
    ports: { admin: 9095, metrics: 9092, health: 9093, xds: 9978 },
    xds: {
      service: env.TRACEGATE_XDS_SERVICE ?? "tracegate",
      mode: env.TRACEGATE_XDS_MODE === "plaintext" ? "plaintext" : "tls",
      auth: env.TRACEGATE_XDS_AUTH !== "false",
      audience: "tracegate",
    },
    proxy: {
      image: env.TRACEGATE_PROXY_IMAGE ?? `${DEFAULT_IMAGE}:${version}`,
      ...(imagePullPolicy !== undefined && { imagePullPolicy }),
      admin: {
        reveal: env.TRACEGATE_PROXY_ADMIN_REVEAL !== "false",
        quit: env.TRACEGATE_PROXY_ADMIN_QUIT !== "false",
      },
    },
  };
}

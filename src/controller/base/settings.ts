import type { LookupRules } from "../../net/egress.ts";
import { network } from "../../translation/schema/scalars.ts";

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
  /** The namespaces and Gateways that the controller serves. */
  readonly watch: {
    /** `TRACEGATE_WATCH_NAMESPACES`, separated by commas; nothing in other namespaces is read or claimed. Default: all. */
    readonly namespaces: readonly string[];
    /** `TRACEGATE_WATCH_GATEWAY_SELECTOR`: labels of Gateways, as `kubectl -l` takes them; default all Gateways. */
    readonly gatewaySelector: string;
  };
  /** `TRACEGATE_INGRESS`: Ingresses are served too; default false. */
  readonly ingress: boolean;
  readonly hosts: {
    /** `TRACEGATE_ALLOW_CLUSTER_HOSTS`: TracegateBackends and policies may name hosts inside the cluster; default false. */
    readonly allowClusterHosts: boolean;
    /** The domains of the cluster's DNS: `cluster.local`, that of the controller's pod, and `clusterset.local` of ServiceImports. */
    readonly domains: readonly string[];
    /** `TRACEGATE_DENY_NETWORKS`: networks, separated by commas, that hosts of TracegateBackends and policies must not be in; default none. */
    readonly denyNetworks: readonly string[];
  };
  readonly proxy: {
    /** `TRACEGATE_PROXY_IMAGE`: image of proxies, unless TracegateParameters name another. */
    readonly image: string;
    /** `TRACEGATE_PROXY_IMAGE_PULL_POLICY`; absent: the cluster's default. */
    readonly imagePullPolicy?: string;
    /** `TRACEGATE_PROXY_ADMIN_REVEAL`, `TRACEGATE_PROXY_ADMIN_QUIT`: false applies to all proxies; default true. */
    readonly admin: { readonly reveal: boolean; readonly quit: boolean };
    /** `TRACEGATE_PROXY_MAX_ROLLOUTS`: Gateways whose pods may be replaced at once; default 5. */
    readonly maxRollouts: number;
  };
}

/** What names may be looked up for objects that others write: the same for the controller and its proxies. */
export function lookupRules({ allowClusterHosts, domains, denyNetworks }: ControllerSettings["hosts"]): LookupRules {
  return { denyDomains: allowClusterHosts ? [] : domains, denyNetworks };
}

const DEFAULT_IMAGE = "ghcr.io/tracegate/tracegate";

/** `resolvConf`: the configuration of the system's resolver. Throws an Error if a variable is invalid. */
export function controllerSettings(
  env: Readonly<Record<string, string | undefined>>,
  version: string,
  hostname: string,
  resolvConf = "",
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
    watch: {
      namespaces: [...new Set(listIn(env, "TRACEGATE_WATCH_NAMESPACES"))],
      gatewaySelector: env.TRACEGATE_WATCH_GATEWAY_SELECTOR ?? "",
    },
    ingress: env.TRACEGATE_INGRESS === "true",
    hosts: {
      allowClusterHosts: env.TRACEGATE_ALLOW_CLUSTER_HOSTS === "true",
      domains: clusterDomains(resolvConf),
      denyNetworks: listIn(env, "TRACEGATE_DENY_NETWORKS").map((each) => networkIn(each, "TRACEGATE_DENY_NETWORKS")),
    },
    proxy: {
      image: env.TRACEGATE_PROXY_IMAGE ?? `${DEFAULT_IMAGE}:${version}`,
      ...(imagePullPolicy !== undefined && { imagePullPolicy }),
      admin: {
        reveal: env.TRACEGATE_PROXY_ADMIN_REVEAL !== "false",
        quit: env.TRACEGATE_PROXY_ADMIN_QUIT !== "false",
      },
      maxRollouts: positiveInteger("TRACEGATE_PROXY_MAX_ROLLOUTS", env.TRACEGATE_PROXY_MAX_ROLLOUTS) ?? 5,
    },
  };
}

type Env = Readonly<Record<string, string | undefined>>;

function listIn(env: Env, name: string): readonly string[] {
  return (env[name] ?? "")
    .split(",")
    .map((each) => each.trim())
    .filter((each) => each !== "");
}

function networkIn(text: string, name: string): string {
  const parsed = network.safeParse(text);
  if (parsed.success) return parsed.data;
  throw new Error(`${name}: ${JSON.stringify(text)} is ${parsed.error.issues[0]?.message ?? "not a network"}`);
}

/** The search domains of a pod include `svc.<domain of the cluster>`. */
function clusterDomains(resolvConf: string): readonly string[] {
  const found = [...resolvConf.matchAll(/^search[ \t]+(.*)$/gm)].flatMap(([, domains = ""]) => domains.split(/\s+/));
  const own = found.filter((each) => each.startsWith("svc.")).map((each) => each.slice("svc.".length));
  return [...new Set(["cluster.local", "clusterset.local", ...own])];
}

/** Throws unless it is a number from 1. */
function positiveInteger(name: string, text: string | undefined): number | undefined {
  if (text === undefined || text === "") return undefined;
  if (!/^[1-9]\d{0,5}$/.test(text)) throw new Error(`${name}=${text} is not a number from 1 to 999999`);
  return Number(text);
}

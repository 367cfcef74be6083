import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Context } from "../runner/context.ts";
import type { ArgumentSpec, OptionSpecs } from "../runner/define-command.ts";
import { CliError, usage } from "../runner/errors.ts";
import type { ProxyAdmin } from "./admin.ts";

/** Options of every command that can talk to a cluster. */
export const CLUSTER_OPTIONS = {
  kubeconfig: {
    type: "text",
    short: "k",
    value: "file",
    completes: "file",
    summary: "Kubeconfig (default $KUBECONFIG, else ~/.kube/config, else the ServiceAccount of the pod)",
  },
  context: { type: "text", value: "name", summary: "Context of the kubeconfig (default its current context)" },
} as const satisfies OptionSpecs;

export interface ClusterOptions {
  readonly kubeconfig: string | undefined;
  readonly context: string | undefined;
  readonly namespace: string | undefined;
}

/** Whether the environment names a kubeconfig. Reads no file. */
function hasKubeconfig({ KUBECONFIG = "", HOME = "" }: Context["env"]): boolean {
  return KUBECONFIG !== "" || (HOME !== "" && existsSync(join(HOME, ".kube", "config")));
}

/** Options that choose the proxy. */
export const TARGET_OPTIONS = {
  local: {
    type: "switch",
    summary: "Use the proxy on this machine; the default when no kubeconfig is configured, or TGCTL_ADMIN is set",
  },
  "proxy-admin-port": {
    type: "integer",
    value: "port",
    min: 1,
    max: 65535,
    summary: "Port of the proxy's admin server (default that of TGCTL_ADMIN on this machine, else 15000)",
  },
  namespace: {
    type: "text",
    short: "n",
    value: "namespace",
    summary: "Namespace of the resource (default that of the kubeconfig's context)",
  },
  pod: { type: "text", value: "name", summary: "Use this pod of the resource" },
  ...CLUSTER_OPTIONS,
} as const satisfies OptionSpecs;

export const RESOURCE: ArgumentSpec = {
  name: "resource",
  summary: "gateway/<name> or another object with pods, such as deploy/<name> or a pod; default the only Gateway",
};

/** `-f, --file`. */
export function fileOption(summary: string) {
  return { type: "text", short: "f", value: "file", completes: "file", summary } as const;
}

/** The part of a command line that selects proxies. */
export interface TargetWords {
  readonly argument: string | undefined;
  readonly options: {
    readonly local: boolean;
    readonly "proxy-admin-port": number | undefined;
    readonly namespace: string | undefined;
    readonly pod: string | undefined;
    readonly kubeconfig: string | undefined;
    readonly context: string | undefined;
    readonly file?: string | undefined;
  };
}

/** The outcome of a call to one proxy. */
export interface Outcome<T> {
  /** `<pod>.<namespace>` */
  readonly name: string;
  readonly pod: ProxyAdmin["pod"];
  readonly result: PromiseSettledResult<T>;
}

/** The proxies that a command is about. */
export interface Proxies extends AsyncDisposable {
  /** `http://localhost:15000` or `gateway/web`. */
  readonly name: string;
  /** A name that other proxies do not have: in a cluster with the address of its API server and the namespace. */
  readonly id: string;
  readonly inCluster: boolean;
  /** `<namespace>/<name>` of the Gateway that the command is about; absent: it is about pods in another way. */
  readonly gateway?: string | undefined;
  /**
   * The first proxy by name, preferring those that run. If there are several, its name is printed to a terminal, and if `said` to any standard
   * error. @throws CliError
   */
  first(said?: boolean): Promise<ProxyAdmin>;
  /** Calls all of them, at least one, and waits for all results. @throws CliError if they cannot be looked up */
  each<T>(call: (proxy: ProxyAdmin) => Promise<T>): Promise<readonly Outcome<T>[]>;
  /**
   * Those that serve requests now, which may be none; call it again to follow replicas that come and go. Undefined for a proxy
   * that is the only one.
   */
  readonly serving: (() => Promise<readonly ProxyAdmin[]>) | undefined;
}

/** Suggests the command line that sends and traces a request, if the user has given only a URL; else undefined. */
export function requestHint(url: string | undefined, resource?: string): string | undefined {
  if (url === undefined || !/^https?:/.test(url)) return undefined;
  const proxy = resource === undefined ? "--port 3000" : `${resource} --port 80`;
  return `tgctl proxy trace ${proxy} -- ${url} (with the port of the listener)`;
}

/**
 * Where the command's data comes from. A resource or an option of the cluster means a cluster; `--local` or TGCTL_ADMIN the
 * admin address. Without any of these it is the cluster if a kubeconfig is configured, else the proxy on this machine. Throws
 * usage errors.
 */
export function chooseTarget({ argument, options }: TargetWords, env: Context["env"]): "file" | "local" | "cluster" {
  const { local, file } = options;
  const ofCluster = (["namespace", "pod", "kubeconfig", "context"] as const).find(
    (name) => options[name] !== undefined,
  );
  if (local && file !== undefined) throw usage("at most one of --file or --local may be passed");
  for (const [given, name] of [
    [local, "--local"],
    [file !== undefined, "--file"],
  ] as const) {
    if (!given) continue;
    if (argument !== undefined) throw usage(`${name} does not accept a resource argument`, requestHint(argument));
    if (ofCluster !== undefined) throw usage(`${name} does not accept --${ofCluster}`);
  }
  if (file !== undefined) return "file";
  if (local) return "local";
  if (argument !== undefined || ofCluster !== undefined) return "cluster";
  return (env.TGCTL_ADMIN ?? "") === "" && hasKubeconfig(env) ? "cluster" : "local";
}

/** The failures of all calls as one error; a mistake in the command line, which all report, is reported once. Undefined if no call failed. */
export function failureOf(outcomes: readonly Outcome<unknown>[]): CliError | undefined {
  const failures = outcomes.flatMap(({ name, pod, result }) =>
    result.status === "rejected" ? [{ name, pod, error: CliError.from(result.reason) }] : [],
  );
  const [first] = failures;
  if (first === undefined) return undefined;
  // All pods report the same mistake in the command line.
  if (first.pod === undefined || failures.every(({ error }) => error.kind === "usage")) return first.error;
  const { why, hint } = first.error;
  return new CliError(
    failures.every(({ error }) => error.kind === "unreachable") ? "unreachable" : "failure",
    failures.map(({ name, error }) => `failed to execute command on ${name}: ${error.message}`).join("\n"),
    { ...(why !== undefined && { why }), ...(hint !== undefined && { hint }), cause: first.error },
  );
}

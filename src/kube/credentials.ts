/** Where the API server is, and how to prove who we are. */
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import type { Agent, RequestOptions } from "node:https";
import { homedir } from "node:os";
import { delimiter, join } from "node:path";
import { messageOf } from "../base/errors.ts";
import { KubeError } from "./client.ts";

type Env = Readonly<Record<string, string | undefined>>;

/** One API server, and a user of it. */
export interface ClusterAccess {
  readonly server: URL;
  /** Of the kubeconfig's context, or that of the pod. Default `default`. */
  readonly namespace: string;
  /** Read again on every call: tokens and certificates rotate. @throws KubeError */
  credentials(): Promise<Credentials>;
}

export interface Credentials {
  readonly tls: TlsSettings;
  /** A header with several values has a list. */
  readonly headers: Readonly<Record<string, string | string[]>>;
  /** Set if the API server is reached through a proxy. */
  readonly agent?: Agent;
}

export type TlsSettings = Pick<
  RequestOptions,
  "ca" | "cert" | "key" | "passphrase" | "pfx" | "rejectUnauthorized" | "servername"
>;

/** A user's choice of the cluster; each field takes precedence over the kubeconfig. */
export interface ClusterChoice {
  /** Path of a kubeconfig. Default: `KUBECONFIG`, then `~/.kube/config`, then the ServiceAccount of the pod. */
  readonly kubeconfig?: string;
  readonly context?: string;
}

/** The files of a ServiceAccount in a pod. */
const SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount";

/** @throws KubeError (status 0, reason `Configuration`) if there is no usable configuration */
export async function findCluster(env: Env, choice: ClusterChoice = {}): Promise<ClusterAccess> {
  const files = choice.kubeconfig === undefined ? defaultFiles(env) : [choice.kubeconfig];
  if (files.length > 0) return (await import("./kubeconfig.ts")).kubeconfigAccess(files, choice.context);
  if (isInCluster(env)) return inClusterAccess(env);
  throw unusable(
    "no cluster is configured: KUBECONFIG is not set, there is no ~/.kube/config, and this is not a pod; name a file with --kubeconfig",
  );
}

function defaultFiles({ KUBECONFIG, HOME = homedir() }: Env): string[] {
  const named = (KUBECONFIG ?? "").split(delimiter).filter((file) => file !== "");
  // Like kubectl: of several files, those that do not exist are skipped.
  if (named.length > 0) return named.length === 1 ? named : named.filter((file) => existsSync(file));
  const file = join(HOME, ".kube", "config");
  return existsSync(file) ? [file] : [];
}

function isInCluster(env: Env): boolean {
  return env.KUBERNETES_SERVICE_HOST !== undefined && existsSync(`${SERVICE_ACCOUNT}/token`);
}

/**
 * The ServiceAccount of this pod. Without `@kubernetes/client-node`, which would take half of the controller's memory.
 * @param folder holds `token`, `ca.crt` and `namespace`
 */
export async function inClusterAccess(env: Env, folder = SERVICE_ACCOUNT): Promise<ClusterAccess> {
  const { KUBERNETES_SERVICE_HOST: host = "", KUBERNETES_SERVICE_PORT: port = "443" } = env;
  const namespace = await readFile(`${folder}/namespace`, "utf8").catch(() => "default");
  return {
    server: new URL(`https://${host.includes(":") ? `[${host}]` : host}:${port}`),
    namespace: namespace.trim(),
    async credentials() {
      try {
        const [ca, token] = await Promise.all([readFile(`${folder}/ca.crt`), readFile(`${folder}/token`, "utf8")]);
        return { tls: { ca }, headers: { authorization: `Bearer ${token.trim()}` } };
      } catch (error) {
        throw unusable(`the ServiceAccount of this pod cannot be read: ${messageOf(error)}`, error);
      }
    },
  };
}

/** The error for a configuration that is missing or cannot be used. */
export function unusable(message: string, cause?: unknown): KubeError {
  return new KubeError(0, "Configuration", message, { cause });
}

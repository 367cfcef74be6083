/** What a client needs to know about an API server, and how a pod finds out. */
import { readFile } from "node:fs/promises";
import type { Agent, RequestOptions } from "node:https";
import { messageOf } from "../base/errors.ts";
import { KubeError } from "./client.ts";

export type Env = Readonly<Record<string, string | undefined>>;

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

/** The files of a ServiceAccount in a pod. */
export const SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount";

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

/** A cluster, for the time of one command. Importing this loads the Kubernetes client: commands do so lazily. */
import { connectCluster, type HttpKubeClient } from "../../kube/connect.ts";
import type { Pod } from "../../kube/objects.ts";
import { podProblem } from "../../kube/pod-problem.ts";
import { PortForward } from "../../kube/port-forward.ts";
import type { ClusterOptions } from "../proxy/proxies.ts";
import type { Context } from "../runner/context.ts";
import { CliError } from "../runner/errors.ts";
import { kubeFailure } from "./errors.ts";
import { podName } from "./resource.ts";

export class Cluster implements AsyncDisposable {
  readonly client: HttpKubeClient;
  /** The namespace of `-n`, else that of the kubeconfig's context. */
  readonly namespace: string;
  readonly #forwards = new Map<PortForward, Pod>();

  /** Reads the configuration; the API server is called by the first request. @throws CliError */
  static async connect(
    { kubeconfig, context: name, namespace }: ClusterOptions,
    { env }: Pick<Context, "env">,
  ): Promise<Cluster> {
    try {
      const client = await connectCluster(env, {
        ...(kubeconfig !== undefined && { kubeconfig }),
        ...(name !== undefined && { context: name }),
      });
      return new Cluster(client, namespace ?? client.access.namespace);
    } catch (error) {
      throw kubeFailure("failed to build Kubernetes client config", error);
    }
  }

  private constructor(client: HttpKubeClient, namespace: string) {
    this.client = client;
    this.namespace = namespace;
  }

  /** Forwards a port of a running pod to this machine, until `close` or the end of the command. @throws CliError */
  async forward(pod: Pod, port: number): Promise<PortForward> {
    const phase = pod.status?.phase ?? "Unknown";
    if (phase !== "Running") {
      const { name, namespace } = pod.metadata;
      const problem = podProblem(pod);
      throw new CliError("failure", `pod is not running. Status=${phase}`, {
        why: `pod ${podName(pod)}${problem === undefined ? "" : ` ${problem.what}`}`,
        hint: problem?.command ?? `kubectl describe pod ${name} -n ${namespace}`,
      });
    }
    const { namespace, name } = pod.metadata;
    const forward = await PortForward.open(this.client.access, { namespace, pod: name, port });
    this.#forwards.set(forward, pod);
    return forward;
  }

  /** Closes the ports that are forwarded to a pod, because it is gone. */
  closeForwards({ metadata: { uid } }: Pod): void {
    for (const [forward, { metadata }] of this.#forwards) {
      if (metadata.uid !== uid) continue;
      forward.close();
      this.#forwards.delete(forward);
    }
  }

  /** Closes all forwarded ports and connections. */
  async [Symbol.asyncDispose](): Promise<void> {
    for (const forward of this.#forwards.keys()) forward.close();
    this.client.close();
  }
}

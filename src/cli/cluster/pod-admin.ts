import type { AdminClientError } from "../../admin/client/client.ts";
import { KubeError, PodConnectionError } from "../../kube/client.ts";
import type { Pod } from "../../kube/objects.ts";
import { podProblem } from "../../kube/pod-problem.ts";
import type { PortForward } from "../../kube/port-forward.ts";
import type { Outcome } from "../proxy/proxies.ts";
import { CliError } from "../runner/errors.ts";
import type { Cluster } from "./cluster.ts";
import { kubeFailure, RBAC_PAGE } from "./errors.ts";
import { podName } from "./resource.ts";

/** The admin server of a pod, at a forwarded port. */
export interface PodAdmin {
  /** `<pod>.<namespace>` */
  readonly name: string;
  readonly pod: { readonly name: string; readonly namespace: string };
  /** `http://127.0.0.1:<port>` */
  readonly address: string;
  /** Why nothing was reached there. */
  unreachable(error: AdminClientError): CliError;
}

/** `portOption` is the option that gives another port. @throws CliError if the pod is not running */
export async function podAdmin(cluster: Cluster, pod: Pod, port: number, portOption: string): Promise<PodAdmin> {
  const forward = await cluster.forward(pod, port);
  const { name, namespace } = pod.metadata;
  return {
    name: podName(pod),
    pod: { name, namespace },
    address: `http://127.0.0.1:${forward.port}`,
    unreachable(error) {
      const problem = podProblem(pod);
      const hint =
        problem === undefined
          ? `${portOption} gives another admin port; is tracegate running in the pod? kubectl logs ${name} -n ${namespace}`
          : `the pod ${problem.what}: ${problem.command}`;
      return (
        forwardFailure(forward, pod, port, hint) ??
        new CliError("unreachable", `the admin server of pod ${podName(pod)} cannot be reached`, {
          why: error.message,
          hint,
          cause: error,
        })
      );
    },
  };
}

/** Why the last connection to a forwarded port failed; undefined if it did not. */
export function forwardFailure(forward: PortForward, pod: Pod, port: number, hint: string): CliError | undefined {
  const { failure } = forward;
  if (failure === undefined) return undefined;
  const what = `failure running port forward process: port ${port} of pod ${podName(pod)}`;
  // For a WebSocket the API server wants both verbs, and does not always say which one is missing.
  if (failure instanceof KubeError && failure.status === 403) {
    const rule = `a Role must allow create and get on pods/portforward in namespace ${pod.metadata.namespace}`;
    return new CliError("failure", `${what}: ${failure.message.trim()}`, {
      hint: `${rule}; ${RBAC_PAGE}`,
      cause: failure,
    });
  }
  if (failure instanceof KubeError) return CliError.from(kubeFailure(what, failure));
  // The kubelet's texts are long and begin with ids of the container runtime.
  const refused = failure instanceof PodConnectionError && failure.refused;
  const why = refused ? "connection refused" : failure.message;
  return new CliError("unreachable", `${what}: ${why}`, { hint, cause: failure });
}

/** Calls the admin servers of all pods that run, and waits for all results. */
export function eachPod<A, T>(
  pods: readonly Pod[],
  open: (pod: Pod) => Promise<A>,
  call: (admin: A) => Promise<T>,
): Promise<readonly Outcome<T>[]> {
  // Evicted pods remain as objects, and pods of the former version are about to end: both matter only if there are no others.
  const living = pods.filter(
    ({ metadata, status }) =>
      metadata.deletionTimestamp === undefined && status?.phase !== "Succeeded" && status?.phase !== "Failed",
  );
  return Promise.all(
    (living.length > 0 ? living : pods).map(async (pod) => {
      const [result] = await Promise.allSettled([open(pod).then(call)]);
      const { name, namespace } = pod.metadata;
      return { name: podName(pod), pod: { name, namespace }, result };
    }),
  );
}

/** The first pod by name, of those that run if any does. */
export function firstRunning(pods: readonly Pod[]): Pod | undefined {
  return pods.find(isRunning) ?? pods[0];
}

function isRunning({ metadata, status }: Pod): boolean {
  return status?.phase === "Running" && metadata.deletionTimestamp === undefined;
}

export function isReady(pod: Pod): boolean {
  return (
    isRunning(pod) && pod.status?.conditions?.some(({ type, status }) => type === "Ready" && status === "True") === true
  );
}

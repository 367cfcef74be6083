import type { Pod } from "./objects.ts";

/** Why a pod does not run, and the command that says more. */
interface PodProblem {
  /** Such as `cannot pull the image ghcr.io/tracegate/tracegate:9`. Without details that change with each attempt. */
  readonly what: string;
  readonly command: string;
}

/** undefined: it runs, or is merely starting. Looks at the first container. */
export function podProblem({ metadata: { namespace, name }, status }: Pod): PodProblem | undefined {
  const describing = `kubectl describe pod ${name} -n ${namespace}`;
  const [container] = status?.containerStatuses ?? [];
  const { reason, message } = container?.state?.waiting ?? {};
  if ((container?.restartCount ?? 0) > 0 && !isReady(status))
    return { what: "crashes", command: `kubectl logs ${name} -n ${namespace} --previous` };
  if (reason === "ErrImagePull" || reason === "ImagePullBackOff")
    return { what: `cannot pull the image ${container?.image}`, command: describing };
  if (reason !== undefined && reason !== "ContainerCreating" && reason !== "PodInitializing")
    return { what: `cannot start: ${reason}${message === undefined ? "" : `, ${message}`}`, command: describing };
  const unscheduled = status?.conditions?.find(({ type }) => type === "PodScheduled");
  if (unscheduled?.status !== "False") return undefined;
  return { what: `cannot be scheduled: ${unscheduled.message}`, command: describing };
}

function isReady(status: Pod["status"]): boolean {
  return status?.conditions?.some(({ type, status: is }) => type === "Ready" && is === "True") === true;
}

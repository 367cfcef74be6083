import { KubeError, type ResourceAccess } from "../../kube/client.ts";
import { CliError, describe } from "../runner/errors.ts";

export const RBAC_PAGE = "docs/kubernetes.md lists what tgctl needs";

/** Whether the object does not exist, as opposed to its type. */
export function isNotFound(error: unknown): boolean {
  return error instanceof KubeError && error.status === 404 && error.objectName !== undefined;
}

/** A failure of the API server while doing `what`, with what to do about it, which is `hint` where the caller knows better. */
export function kubeFailure(what: string, error: unknown, hint?: string): unknown {
  if (!(error instanceof KubeError)) return error;
  if (error.reason === "Configuration") {
    return new CliError("usage", `failed to build Kubernetes client config: ${error.message}`, {
      hint: "--kubeconfig <file> and --context <name> choose a cluster; --local uses the proxy on this machine",
      cause: error,
    });
  }
  const kind = error.status === 0 ? "unreachable" : "failure";
  return new CliError(kind, `${what}: ${describe(error)}`, {
    ...(hint === undefined ? hintFor(error) : { hint }),
    cause: error,
  });
}

function hintFor({ status, access, objectName }: KubeError): { hint?: string } {
  if (status === 0) {
    return {
      hint: "check that the cluster runs and can be reached from here; --context <name> and --kubeconfig <file> choose another",
    };
  }
  if (status === 401) return { hint: "the credentials in the kubeconfig are invalid or have expired: log in again" };
  if (status === 403) return { hint: `${missingRule(access)}; ${RBAC_PAGE}; -n chooses another namespace` };
  if (status === 404 && objectName === undefined) {
    return { hint: "the cluster lacks this type of object: install the CRDs of the Gateway API" };
  }
  if (status === 404) return { hint: "kubectl get gateways -A lists Gateways with their namespaces; -n chooses one" };
  return {};
}

/** What a Role must allow. */
function missingRule(access: ResourceAccess | undefined): string {
  if (access === undefined) return "a Role must allow it";
  const { verb, resource, namespace } = access;
  return `a Role must allow ${verb} on ${resource}${namespace === undefined ? "" : ` in namespace ${namespace}`}`;
}

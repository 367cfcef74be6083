import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Context } from "../runner/context.ts";
import type { OptionSpecs } from "../runner/define-command.ts";

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
export function hasKubeconfig({ KUBECONFIG = "", HOME = "" }: Context["env"]): boolean {
  return KUBECONFIG !== "" || (HOME !== "" && existsSync(join(HOME, ".kube", "config")));
}

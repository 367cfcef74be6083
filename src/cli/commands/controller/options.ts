import { CLUSTER_OPTIONS } from "../../proxy/proxies.ts";
import type { OptionSpecs } from "../../runner/define-command.ts";

/** Options that choose the controller. */
export const CONTROLLER_OPTIONS = {
  namespace: {
    type: "text",
    short: "n",
    value: "namespace",
    default: "tracegate-system",
    summary: "Namespace of the controller",
  },
  "controller-admin-port": {
    type: "integer",
    short: "p",
    value: "port",
    min: 1,
    max: 65535,
    default: 9095,
    summary: "Port of the controller's admin server",
  },
  ...CLUSTER_OPTIONS,
} as const satisfies OptionSpecs;

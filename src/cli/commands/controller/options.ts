import { CLUSTER_OPTIONS } from "../../proxy/proxies.ts";
import type { OptionSpecs } from "../../runner/define-command.ts";

/** Options of commands that are about something else, and ask the controller too. */
export const ASKED_CONTROLLER = {
  "controller-namespace": {
    type: "text",
    value: "namespace",
    default: "tracegate-system",
    summary: "Namespace of the controller",
  },
  "controller-admin-port": {
    type: "integer",
    value: "port",
    min: 1,
    max: 65535,
    default: 9095,
    summary: "Port of the controller's admin server",
  },
} as const satisfies OptionSpecs;

/** Options that choose the controller. */
export const CONTROLLER_OPTIONS = {
  namespace: { ...ASKED_CONTROLLER["controller-namespace"], short: "n" },
  "controller-admin-port": { ...ASKED_CONTROLLER["controller-admin-port"], short: "p" },
  ...CLUSTER_OPTIONS,
} as const satisfies OptionSpecs;

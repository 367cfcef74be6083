import type { ArgumentSpec, OptionSpecs } from "../../define-command.ts";
import { usage } from "../../errors.ts";

/** Options that choose the proxy. */
export const TARGET_OPTIONS = {
  local: { type: "switch", summary: "Use the proxy at the admin address; the default in this build" },
  "proxy-admin-port": {
    type: "integer",
    value: "port",
    min: 1,
    max: 65535,
    summary: "Port of the proxy's admin server on this machine (default that of TGCTL_ADMIN, else 15000)",
  },
  namespace: {
    type: "text",
    short: "n",
    value: "namespace",
    summary: "Namespace of the resource; needs Kubernetes, which this build does not support",
  },
} as const satisfies OptionSpecs;

export const RESOURCE: ArgumentSpec = {
  name: "resource",
  summary: "A proxy in Kubernetes, such as gateway/<name>; not available in this build",
};

/** `-f, --file`. */
export function fileOption(summary: string) {
  return { type: "text", short: "f", value: "file", completes: "file", summary } as const;
}

interface Target {
  readonly argument: string | undefined;
  readonly options: {
    readonly local: boolean;
    readonly namespace: string | undefined;
    readonly file?: string | undefined;
  };
}

/** The command line that sends and traces a request, for one that has a URL but lacks the rest; else undefined. */
export function requestHint(url: string | undefined): string | undefined {
  if (url === undefined || !/^https?:/.test(url)) return undefined;
  return `tgctl proxy trace --port 3000 -- ${url} (with the port of the listener)`;
}

/**
 * Checks that a command line names one source: the admin address, which is the default, or `--file` where a
 * command has it. Throws usage errors.
 */
export function requireTarget({ argument, options: { local, namespace, file } }: Target): void {
  if (local && file !== undefined) throw usage("at most one of --file or --local may be passed");
  if (local && argument !== undefined)
    throw usage("--local does not accept a resource argument", requestHint(argument));
  if (file !== undefined && argument !== undefined) throw usage("--file does not accept a resource argument");
  if (argument !== undefined) {
    throw usage(
      `cannot look up "${argument}": targets in Kubernetes are not available in this build`,
      requestHint(argument) ?? "leave it out for the proxy on this machine, or set TGCTL_ADMIN to an admin address",
    );
  }
  if (namespace !== undefined) {
    throw usage(
      "--namespace needs a target in Kubernetes, which is not available in this build",
      "leave it out: without a resource the command uses the proxy on this machine",
    );
  }
}

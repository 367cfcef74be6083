import type { ArgumentSpec, OptionSpecs } from "../../define-command.ts";
import { usage } from "../../errors.ts";

/** Which proxy a command talks to. */
export const TARGET_OPTIONS = {
  local: { type: "switch", summary: "Use the proxy on this machine, at its admin address" },
  "proxy-admin-port": {
    type: "integer",
    value: "port",
    min: 1,
    max: 65535,
    default: 15000,
    summary: "Port of the proxy's admin server",
  },
} as const satisfies OptionSpecs;

export const RESOURCE: ArgumentSpec = {
  name: "resource",
  summary: "A proxy in Kubernetes, such as gateway/<name>; this build reaches local proxies only, see --local",
};

/** `-f, --file`. */
export function fileOption(summary: string) {
  return { type: "text", short: "f", value: "file", completes: "file", summary } as const;
}

interface Target {
  readonly argument: string | undefined;
  readonly options: { readonly local: boolean; readonly file?: string | undefined };
}

/** How a request is sent and traced, for a command line that has a URL but not what belongs to it; else undefined. */
export function requestHint(url: string | undefined): string | undefined {
  if (url === undefined || !/^https?:/.test(url)) return undefined;
  return `tgctl proxy trace --local --port 3000 -- ${url} (with the port of the listener)`;
}

/**
 * Checks that a command line names exactly one place to look at, which is `--local`, or `--file` where a command has it.
 * Throws usage errors.
 */
export function requireTarget({ argument, options: { local, file } }: Target, hasFile: boolean): void {
  if (local && file !== undefined) throw usage("at most one of --file or --local may be passed");
  if (local && argument !== undefined)
    throw usage("--local does not accept a resource argument", requestHint(argument));
  if (file !== undefined && argument !== undefined) throw usage("--file does not accept a resource argument");
  if (local || file !== undefined) return;
  const others = hasFile
    ? "--local for a proxy on this machine, or --file for saved data"
    : "--local for a proxy on this machine";
  if (argument === undefined) throw usage("no proxy named", others);
  throw usage(`cannot look up "${argument}": targets in Kubernetes are not available in this build`, others);
}

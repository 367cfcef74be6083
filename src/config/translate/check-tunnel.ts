import type { PolicySet } from "../../policies/policy-set.ts";
import type { Target } from "../../upstream/target.ts";
import type { Path, Report } from "./report.ts";

/** Proxies connect to hosts. */
export function isTunnelled({ type }: Target): boolean {
  return type !== "unix" && type !== "internal";
}

/** Reports a proxy on the way to what no proxy can reach; `path` is where `policies` stands. */
export function checkTunnel(target: Target, { backendTunnel }: PolicySet, path: Path, report: Report): void {
  if (backendTunnel !== undefined && !isTunnelled(target))
    report([...path, "policies", "backendTunnel"], {
      message: `no proxy can reach ${target.type === "unix" ? "a Unix socket" : "the admin API"}; leave it out`,
    });
}

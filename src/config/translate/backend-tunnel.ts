import { isFieldValue } from "../../http/h1/characters.ts";
import type { BackendTunnelInput } from "../../policies/backend-tunnel/schema.ts";
import type { BackendTunnel } from "../../upstream/settings.ts";
import type { Report } from "../parse/document.ts";
import type { Path } from "../parse/paths.ts";
import { translateBackendTls } from "./backend-tls.ts";
import type { CalledTargets } from "./called-targets.ts";
import type { Sources } from "./sources.ts";

type Policies = NonNullable<BackendTunnelInput["policies"]>;
type Key = NonNullable<Policies["backendAuth"]>["key"];

/** `backendTunnel` with its proxy, and what the gateway shows to that; `input` has the texts in place of their sources. */
export function translateBackendTunnel(
  input: unknown,
  path: Path,
  sources: Sources,
  calledTargets: CalledTargets,
  report: Report,
): BackendTunnel {
  const { proxy, policies } = input as BackendTunnelInput;
  const at = [...path, "policies"];
  const named = calledTargets.policiesOf(proxy.backend) as Policies;
  // What is wrong with a named backend is reported where it stands.
  const { withoutDiagnostics } = calledTargets;
  const key =
    policies?.backendAuth?.key ??
    (withoutDiagnostics.sources.fill("backendAuth", named.backendAuth, path) as Policies["backendAuth"])?.key;
  const authorization = key === undefined ? undefined : authorizationOf(key, [...at, "backendAuth", "key"], report);
  const tls =
    policies?.backendTLS !== undefined
      ? translateBackendTls(policies.backendTLS, [...at, "backendTLS"], sources, report)
      : named.backendTLS !== undefined
        ? translateBackendTls(named.backendTLS, path, withoutDiagnostics.sources, withoutDiagnostics.report)
        : undefined;
  return {
    proxy: calledTargets.find(proxy, [...path, "proxy"]),
    ...(authorization !== undefined && { authorization }),
    ...(tls !== undefined && { tls }),
  };
}

/** The credential as a field value; undefined when it could not be read, or when a proxy has no place for it. */
function authorizationOf(key: Key, path: Path, report: Report): string | undefined {
  const { location } = key;
  const value = key.value as string | undefined;
  if (!("header" in location)) {
    report([...path, "location"], { message: "proxies take credentials in a header only", expected: "header" });
    return undefined;
  }
  if (value === undefined) return undefined;
  const text = `${location.header.prefix}${value.trim()}`;
  if (isFieldValue(text)) return text;
  report([...path, "value"], { message: "cannot be sent in a header; expected text in one line" });
  return undefined;
}

import type { Path } from "../base/paths.ts";
import { isFieldValue } from "../http/message/syntax.ts";
import { defined, type Resolver } from "../policies/contract/resolver.ts";
import type { CredentialTarget } from "../policies/schema/location.ts";
import type { BackendTunnelInput } from "../policies/schema/upstream-settings.ts";
import { resolveTls } from "../policies/upstream-settings/resolve.ts";
import type { BackendTunnel } from "../upstream/settings/settings.ts";
import type { Target } from "../upstream/settings/target.ts";
import { innermost } from "./call-policies.ts";
import type { CallContext } from "./called-targets.ts";
import type { Report } from "./problems/problem.ts";

/** `backendTunnel` with its proxy and the gateway's credential for it. */
export function translateBackendTunnel(
  { proxy, policies }: BackendTunnelInput,
  path: Path,
  { sources, calledTargets, report }: CallContext,
  resolver: Resolver,
): BackendTunnel {
  const at = [...path, "policies"];
  const named = calledTargets.policiesOf(proxy.backend);
  const key = policies?.backendAuth?.key;
  const text = key && sources.readText([...at, "backendAuth", "key", "value"], key.value);
  const other = innermost(named, "backendAuth")?.key;
  const shown =
    key !== undefined
      ? { location: key.location, value: text }
      : other && {
          location: other.location,
          value: calledTargets.quietly((quiet) => quiet.sources.readText(path, other.value)).value,
        };
  const authorization = shown && authorizationOf(shown, [...at, "backendAuth", "key"], report);
  // Problems of a named backend are reported at its definition.
  const theirs = innermost(named, "backendTLS");
  const { value: tls, invalid } =
    policies?.backendTLS !== undefined
      ? { value: resolveTls(policies.backendTLS, resolver.within("policies", "backendTLS")), invalid: false }
      : resolver.quietly((quiet) => theirs && resolveTls(theirs, quiet));
  const target = calledTargets.find(proxy, [...path, "proxy"]);
  // Without its CAs, the proxy would be verified with the CAs of the system.
  const usable: Target = invalid ? { type: "invalid", reference: proxy.backend ?? "" } : target;
  return defined({ proxy: usable, authorization, tls });
}

interface Key {
  readonly location: CredentialTarget;
  readonly value: string | undefined;
}

/** The credential as a field value; undefined when it could not be read, or when a proxy has no place for it. */
function authorizationOf({ location, value }: Key, path: Path, report: Report): string | undefined {
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

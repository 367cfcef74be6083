/** What the annotations of an Ingress say about its rules. */
import type { Json } from "../converted.ts";
import type { Findings } from "../findings.ts";
import { merged } from "../merge.ts";
import { type Access, accessOf, listOf } from "./access.ts";
import { Annotations } from "./annotations.ts";
import type { IngressManifest } from "./manifests.ts";
import { snippetOf } from "./snippets.ts";
import { callsOf, trafficOf } from "./traffic.ts";

export interface Settings {
  readonly annotations: Annotations;
  /** Policies of its routes. */
  readonly policies: Json;
  /** Policies of its backends. */
  readonly calls: Json;
  /** Why its requests get 501. */
  readonly closed: string | undefined;
  /** What every path redirects to, in place of a backend. */
  readonly redirect: Json | undefined;
  /** Whether requests are kept out. */
  readonly isRestricted: boolean;
  readonly isRegex: boolean;
  readonly rewriteTarget: string | undefined;
  readonly aliases: readonly string[];
}

export function settingsOf(ingress: IngressManifest, findings: Findings): Settings {
  const annotations = new Annotations(ingress, findings);
  const others = annotations.reportOthers();
  const paths = (ingress.spec.rules ?? []).reduce((sum, { http }) => sum + (http?.paths?.length ?? 0), 0);
  const access: Access = accessOf(annotations, ingress.namespace, paths);
  const snippets = (["server-snippet", "configuration-snippet"] as const).map((name) => snippetOf(annotations, name));
  const calls = callsOf(annotations);
  const lost = [others, access.lost, ...snippets.map((each) => each.lost)].find((each) => each !== undefined);
  if (lost !== undefined)
    findings.find(
      "error",
      ingress.at(["metadata", "name"]),
      `requests of Ingress ${ingress.namespace}/${ingress.name} get 501: ${lost} may restrict them, and is not converted`,
      "add the policy that takes its place, then remove directResponse and name the backend",
    );
  const policies = merged(trafficOf(annotations), ...snippets.map((each) => each.policies), access.policies);
  const rewriteTarget = annotations.get("rewrite-target");
  return {
    annotations,
    policies,
    calls: calls ?? {},
    closed: lost ?? (calls === undefined ? "backend-protocol" : undefined),
    redirect: redirectOf(annotations),
    isRestricted:
      lost !== undefined ||
      ["basicAuth", "extAuthz", "ipAccess", "satisfy"].some((kind) => access.policies[kind] !== undefined),
    isRegex: rewriteTarget !== undefined || annotations.is("use-regex"),
    rewriteTarget: rewriteTarget === "" ? undefined : rewriteTarget,
    aliases: listOf(annotations.get("server-alias") ?? "").map((each) => each.toLowerCase()),
  };
}

/** `permanent-redirect`, `temporal-redirect`. */
function redirectOf(annotations: Annotations): Json | undefined {
  for (const [name, status] of [
    ["temporal-redirect", 302],
    ["permanent-redirect", 301],
  ] as const) {
    const url = annotations.get(name);
    if (url === undefined) continue;
    const [, scheme, authority = "", path = ""] = /^(https?):\/\/([^/?#$]+)(\/[^?#$]*)?$/.exec(url) ?? [];
    const code = Number(annotations.get(`${name}-code`) ?? status);
    if (scheme === undefined) {
      annotations.find(
        "error",
        name,
        `a redirect to ${url} has no equivalent: requests get 501`,
        "use RequestRedirect",
      );
      return { directResponse: { status: 501 } };
    }
    annotations.find("warning", name, "the query of the request stays in the redirect");
    return {
      requestRedirect: {
        scheme,
        authority: { full: authority },
        path: { full: path === "" ? "/" : path },
        status: [301, 302, 303, 307, 308].includes(code) ? code : status,
      },
    };
  }
  return undefined;
}

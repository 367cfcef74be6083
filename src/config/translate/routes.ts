import type { PathMatch, Route, RouteMatch, Target, TcpRoute, ValueMatch } from "../../ir/ir.ts";
import type { PolicySet } from "../../ir/policies.ts";
import { mergePolicies } from "../../policies/merge.ts";
import { DynamicTarget } from "../../upstream/dynamic-target.ts";
import type { RouteInput, TcpRouteInput } from "../schema/routes.ts";
import type { Context, Path } from "./context.ts";
import { translatePolicies } from "./policies.ts";
import { translateBackend } from "./targets.ts";

type MatchInput = RouteInput["matches"][number];
type NamedInput = NonNullable<MatchInput["headers"]>[number];

const ANY: RouteMatch = { path: { type: "pathPrefix", value: "/" }, headers: [], query: [] };

/** One HTTP route; `owner` is the key of its listener or group, `inherited` what targets attach to that. */
export function translateRoute(
  input: RouteInput,
  index: number,
  owner: string,
  inherited: PolicySet,
  path: Path,
  context: Context,
): Route {
  const name = input.name ?? `route${index}`;
  const key = `${owner}/${input.namespace}/${name}`;
  const own = translatePolicies(input.policies, "route", [...path, "policies"], context);
  const policies = mergePolicies(inherited, context.targeted.forRoute(name, input.namespace, input.ruleName), own);
  return {
    key,
    name,
    namespace: input.namespace,
    ...(input.ruleName !== undefined && { ruleName: input.ruleName }),
    hostnames: input.hostnames.map((hostname) => hostname.toLowerCase()),
    matches: input.matches.length > 0 ? input.matches.map(translateMatch) : [ANY],
    policies,
    backends: input.backends.map((backend, i) =>
      translateBackend(backend, `/${key}/backend${i}`, [...path, "backends", i], context),
    ),
  };
}

export function translateTcpRoute(
  input: TcpRouteInput,
  index: number,
  owner: string,
  path: Path,
  context: Context,
): TcpRoute {
  const name = input.name ?? `tcproute${index}`;
  const key = `${owner}/${input.namespace}/${name}`;
  const common = translatePolicies(input.policies, "backend", [...path, "policies"], context);
  return {
    key,
    name,
    namespace: input.namespace,
    hostnames: input.hostnames.map((hostname) => hostname.toLowerCase()),
    backends: input.backends.map((backend, i) => {
      const at = [...path, "backends", i];
      const translated = translateBackend(backend, `/${key}/backend${i}`, at, context);
      const wrong = backend.backend === undefined ? undefined : unusable(translated.target);
      if (wrong !== undefined) context.report([...at, "backend"], { message: wrong });
      return { ...translated, policies: withoutHttp(mergePolicies(common, translated.policies)) };
    }),
  };
}

/** Only HTTP is offered as HTTP; of other protocols nobody knows the name. */
function withoutHttp(policies: PolicySet): PolicySet {
  const { backendTLS } = policies;
  return backendTLS === undefined ? policies : { ...policies, backendTLS: { alpn: [], ...backendTLS } };
}

/** Why a named backend is none for connections. */
function unusable(target: Target): string | undefined {
  if (target.type === "internal") return "is internal, and the admin API is HTTP; give it an HTTP route";
  if (target.type !== "dynamic" || target.expression === undefined) return undefined;
  try {
    new DynamicTarget(target.expression, "network");
    return undefined;
  } catch (error) {
    return `its target needs a request: ${error instanceof Error ? error.message : String(error)}`;
  }
}

function translateMatch(match: MatchInput): RouteMatch {
  return {
    path: translatePath(match.path),
    ...(match.method !== undefined && { method: match.method }),
    headers: (match.headers ?? []).map((each) => translateValue(each, true)),
    query: (match.query ?? []).map((each) => translateValue(each, false)),
  };
}

function translatePath(path: MatchInput["path"]): PathMatch {
  if (path?.exact !== undefined) return { type: "exact", value: path.exact };
  if (path?.regex !== undefined) return { type: "regex", value: path.regex };
  return { type: "pathPrefix", value: path?.pathPrefix ?? "/" };
}

function translateValue({ name, value }: NamedInput, lower: boolean): ValueMatch {
  const type = value.exact === undefined ? "regex" : "exact";
  return { name: lower ? name.toLowerCase() : name, type, value: value.exact ?? value.regex ?? "" };
}

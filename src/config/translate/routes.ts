import type { PathMatch, Route, RouteMatch, TcpRoute, ValueMatch } from "../../ir/ir.ts";
import type { PolicySet } from "../../ir/policies.ts";
import { compilePolicies } from "../../policies/compile.ts";
import type { RouteInput, TcpRouteInput } from "../schema/routes.ts";
import type { Context, Path } from "./context.ts";
import { mergePolicies, toPolicySet } from "./policies.ts";
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
  const own = toPolicySet(input.policies);
  const policies = mergePolicies(inherited, context.forRoute(name, input.namespace, input.ruleName), own);
  tryPolicies(own, "route", [...path, "policies"], context);
  return {
    key,
    name,
    namespace: input.namespace,
    ...(input.ruleName !== undefined && { ruleName: input.ruleName }),
    hostnames: input.hostnames.map((hostname) => hostname.toLowerCase()),
    matches: input.matches.length > 0 ? input.matches.map(translateMatch) : [ANY],
    policies,
    backends: input.backends.map((backend, i) => {
      const at = [...path, "backends", i];
      const translated = translateBackend(backend, `/${key}/backend${i}`, at, context);
      tryPolicies(translated.policies, "backend", [...at, "policies"], context);
      return translated;
    }),
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
  return {
    key,
    name,
    namespace: input.namespace,
    hostnames: input.hostnames.map((hostname) => hostname.toLowerCase()),
    backends: input.backends.map((backend, i) =>
      translateBackend(backend, `/${key}/backend${i}`, [...path, "backends", i], context),
    ),
  };
}

/** Reports what the policies themselves refuse, such as a header that may not be set. */
export function tryPolicies(
  set: PolicySet,
  phase: "gateway" | "route" | "backend",
  path: Path,
  context: Context,
): void {
  for (const [kind, value] of Object.entries(set)) {
    try {
      compilePolicies({ [kind]: value }, phase);
    } catch (error) {
      context.report([...path, kind], { message: error instanceof Error ? error.message : String(error) });
    }
  }
}

/** Two routes with one key would shadow each other silently. */
export function reportDuplicates(
  routes: readonly { readonly key: string; readonly name: string }[],
  paths: readonly Path[],
  context: Context,
): void {
  const seen = new Set<string>();
  for (const [i, route] of routes.entries()) {
    if (seen.has(route.key))
      context.report(paths[i] ?? [], { message: `a second route called ${route.name}; names must differ` });
    seen.add(route.key);
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

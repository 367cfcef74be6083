import type { Converted, ConvertedRoute, Json } from "../converted.ts";
import type { Findings } from "../findings.ts";
import { nameOf } from "../names.ts";
import { type ParentRefs, writeGateway } from "./listeners.ts";
import { Output } from "./output.ts";
import { MAX_MATCHES, ruleOf } from "./rules.ts";

/** Of a route, by the Gateway API. */
const MAX_RULES = 16;
const MAX_ROUTE_MATCHES = 128;
const MAX_HOSTNAMES = 16;
const MAX_PARENTS = 32;

/**
 * What was converted as objects of the Gateway API and of tracegate, in documents of YAML. `findings`: more are added. Objects have the
 * namespaces of the input, and none if it has none.
 */
export function writeGatewayApi(converted: Converted, findings: Findings): string {
  const output = new Output(findings);
  const namespace = gatewayNamespace(converted, findings);
  const parents = writeGateway(converted, namespace, output);
  const groups = Map.groupBy(converted.routes.flatMap(inParts), (each) =>
    JSON.stringify([each.namespace, groupOf(each), each.hostnames, each.listeners]),
  );
  for (const routes of groups.values())
    for (const rules of chunks(routes)) writeRoute(rules, parents, converted.backends, output);
  return output.text();
}

/** That of the objects, if they have the same. */
function gatewayNamespace({ routes }: Converted, findings: Findings): string | undefined {
  const namespaces = new Set(routes.flatMap(({ namespace }) => namespace ?? []));
  const [first] = namespaces;
  const [route] = routes;
  if (first === undefined || route === undefined || namespaces.size === 1) return first;
  findings.find(
    "note",
    route.at,
    `the Gateway is in namespace default, because the input is in ${namespaces.size} namespaces`,
    "move it where it belongs, with the references to it",
  );
  return "default";
}

function groupOf({ group, listeners: [first = ""] }: ConvertedRoute): string {
  return group ?? first.slice(first.indexOf("/") + 1);
}

/** A rule has a limited number of matches. */
function inParts(route: ConvertedRoute): readonly ConvertedRoute[] {
  const { matches } = route;
  if (matches.length <= MAX_MATCHES) return [route];
  const parts: ConvertedRoute[] = [];
  for (let i = 0; i < matches.length; i += MAX_MATCHES)
    parts.push({ ...route, matches: matches.slice(i, i + MAX_MATCHES) });
  return parts;
}

/** As many rules as an HTTPRoute can have. */
function chunks(routes: readonly ConvertedRoute[]): readonly (readonly ConvertedRoute[])[] {
  const result: ConvertedRoute[][] = [];
  let matches = 0;
  for (const each of routes) {
    const last = result.at(-1);
    matches += Math.max(1, each.matches.length);
    if (last !== undefined && last.length < MAX_RULES && matches <= MAX_ROUTE_MATCHES) last.push(each);
    else {
      result.push([each]);
      matches = Math.max(1, each.matches.length);
    }
  }
  return result;
}

function writeRoute(
  routes: readonly ConvertedRoute[],
  parents: ParentRefs,
  named: readonly Json[],
  output: Output,
): void {
  const [first] = routes;
  if (first === undefined) return;
  const { namespace, hostnames = [], listeners } = first;
  // A listener that is left out has no place.
  const refs = listeners.map((each) => parents.get(each)).filter((each) => each !== undefined);
  const rules = routes.map((each) => ruleOf(each, named, { namespace, at: each.at }, output));
  const from = [...new Set(routes.map((each) => each.from))];
  for (let i = 0; i < refs.length; i += MAX_PARENTS)
    for (let j = 0; j === 0 || j < hostnames.length; j += MAX_HOSTNAMES)
      output.add(
        "HTTPRoute",
        namespace,
        nameOf(groupOf(first)),
        {
          parentRefs: refs.slice(i, i + MAX_PARENTS).map((each) => withoutNamespace(each, namespace)),
          ...(hostnames.length > 0 && { hostnames: hostnames.slice(j, j + MAX_HOSTNAMES) }),
          rules,
        },
        { from },
      );
}

/** The default namespace of a reference is that of the route. */
function withoutNamespace({ namespace, ...others }: Json, own: string | undefined): Json {
  const { name, ...rest } = others;
  return namespace === own
    ? others
    : {
        ...(rest.group !== undefined && { group: rest.group, kind: rest.kind }),
        namespace,
        name,
        sectionName: rest.sectionName,
      };
}

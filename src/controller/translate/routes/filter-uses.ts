/** Where routes use TracegatePolicies as filters, for what policies say about themselves. */
import { refKey } from "../../../kube/keys.ts";
import { type GrpcRoute, type HttpRoute, type HttpRouteFilter, TRACEGATE_GROUP } from "../../../kube/objects.ts";
import { defineIndex, defineQuery } from "../../graph/graph.ts";
import type { FilterPhase } from "./extension-ref.ts";
import { gatewaysOfRoute } from "./service-routes.ts";

/** A filter of a route that names a policy. */
export interface FilterUse {
  readonly route: { readonly kind: "HTTPRoute" | "GRPCRoute"; readonly namespace: string; readonly name: string };
  /** Name of the rule, which policies can be attached to. */
  readonly rule?: string;
  /** Such as `rules[0].filters[1]`. */
  readonly at: string;
  readonly phase: FilterPhase;
  /** Keys of the Gateways of ours that accept the route. */
  readonly gateways: readonly string[];
}

type FilteringRoute = HttpRoute | GrpcRoute;

const BY_FILTER = {
  HTTPRoute: defineIndex("HTTPRoute", policiesNamedBy),
  GRPCRoute: defineIndex("GRPCRoute", policiesNamedBy),
};

function policiesNamedBy(route: FilteringRoute): readonly string[] {
  return [...new Set(filtersOf(route).map(({ policy }) => policy))];
}

interface NamedPolicy extends Pick<FilterUse, "at" | "phase" | "rule"> {
  /** `<namespace>/<name>` */
  readonly policy: string;
}

function filtersOf({ metadata: { namespace }, spec }: FilteringRoute): readonly NamedPolicy[] {
  return (spec.rules ?? []).flatMap(({ name: rule, filters = [], backendRefs = [] }, i) => {
    const named = (list: readonly HttpRouteFilter[], phase: FilterPhase, at: string): readonly NamedPolicy[] =>
      list.flatMap(({ extensionRef: { group, kind, name } = {} }, j) =>
        group === TRACEGATE_GROUP && kind === "TracegatePolicy"
          ? { policy: `${namespace}/${name}`, phase, at: `${at}[${j}]`, ...(rule !== undefined && { rule }) }
          : [],
      );
    return [
      ...named(filters, "route", `rules[${i}].filters`),
      ...backendRefs.flatMap((ref, j) => named(ref.filters ?? [], "backend", `rules[${i}].backendRefs[${j}].filters`)),
    ];
  });
}

/** Where routes use a policy (`<namespace>/<name>`) as a filter. */
export const filterUses = defineQuery<readonly FilterUse[]>("filterUses", (read, policy) => {
  const routes = [...read.find(BY_FILTER.HTTPRoute, policy), ...read.find(BY_FILTER.GRPCRoute, policy)];
  return routes.flatMap((object) => {
    const { namespace, name } = object.metadata;
    const route = { kind: object.kind, namespace, name };
    const gateways = [...new Set(read.query(gatewaysOfRoute, refKey(route)))].sort();
    return filtersOf(object)
      .filter((each) => each.policy === policy)
      .map(({ policy: _policy, ...use }) => ({ route, ...use, gateways }));
  });
});

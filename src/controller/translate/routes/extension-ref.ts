/**
 * The filter ExtensionRef: a TracegatePolicy of the route's namespace, for the rule or the backend that names it.
 *
 *     filters: [{ type: ExtensionRef, extensionRef: { group: tracegate.dev, kind: TracegatePolicy, name: partners } }]
 */
import type { PolicyLevel } from "../../../ir/origins.ts";
import { type HttpRouteFilter, TRACEGATE_GROUP } from "../../../kube/objects.ts";
import type { Referrer } from "../backends/backend-refs.ts";
import { type PolicyInput, policyInput } from "../policy/input.ts";
import { type PolicyModel, policyModel } from "../policy/model.ts";

/** Filters of a rule run when it is selected, those of a backendRef when that backend is called. */
export type FilterPhase = "route" | "backend";

/** The section of a policy that is a filter in each phase. */
const SECTIONS = { route: "traffic", backend: "backend" } as const;

/** The policies of a filter; undefined: they cannot be applied as written, so requests must not pass (HTTPRouteFilter.extensionRef). */
export function translateExtensionRef(
  { group = "", kind = "", name = "" }: Partial<NonNullable<HttpRouteFilter["extensionRef"]>>,
  phase: FilterPhase,
  where: string,
  { read, namespace, findings }: Referrer,
): PolicyLevel | undefined {
  const refuse = (reason: Parameters<typeof findings.breaks>[0], message: string): undefined => {
    findings.breaks(reason, `${where}: ${message}`);
    return undefined;
  };
  if (group !== TRACEGATE_GROUP || kind !== "TracegatePolicy")
    return refuse(
      "InvalidKind",
      `${kind} of group "${group}" is not supported as a filter; use a TracegatePolicy (${TRACEGATE_GROUP})`,
    );
  const key = `${namespace}/${name}`;
  const input = read.query(policyInput, key);
  const model = read.query(policyModel, key);
  if (input === undefined || model === undefined)
    return refuse("FilterNotFound", `TracegatePolicy ${key} does not exist`);
  if (input.sections.length === 0)
    return refuse("UnsupportedValue", `TracegatePolicy ${key} is invalid, see its status`);
  const misuse = filterProblem(input, phase);
  if (misuse !== undefined) return refuse("UnsupportedValue", `TracegatePolicy ${key} ${misuse}`);
  const invalid = invalidKinds(model, phase);
  if (invalid.length > 0)
    return refuse("UnsupportedValue", `${invalid.join(", ")} of TracegatePolicy ${key} cannot be used, see its status`);
  return model.levels[phase];
}

/** The kinds because of which a policy cannot be a filter: a rule is not served with only some of its filters. */
export function invalidKinds({ invalid }: PolicyModel, phase: FilterPhase): readonly string[] {
  return invalid[SECTIONS[phase]];
}

/** Why a policy cannot be a filter of a phase, as the rest of a sentence about it. A section that would be ignored is a mistake. */
export function filterProblem({ sections, phase }: PolicyInput, use: FilterPhase): string | undefined {
  const wanted = SECTIONS[use];
  const place = use === "route" ? "a rule" : "a backendRef";
  if (!sections.includes(wanted)) return `has no section ${wanted}, which a filter of ${place} applies`;
  const others = sections.filter((section) => section !== wanted);
  if (others.length > 0)
    return `has the section ${others.join(" and ")}, which a filter of ${place} cannot apply; move it to another policy`;
  if (wanted === "traffic" && phase === "gateway")
    return "has the phase PreRouting, and filters run after a rule is selected; set PostRouting";
  return undefined;
}

/** The pages about policies: docs/policies/, one for each kind and one about all of them. */
import { BACKEND_KINDS, TRAFFIC_KINDS } from "../../src/controller/crd/policy.ts";
import { DECIDES_NOTHING, isShadowable, whyNotShadowable } from "../../src/policies/contract/shadow.ts";
import { FINAL_ORDER, REQUEST_ORDER, RESPONSE_ORDER } from "../../src/policies/order.ts";
import type { PolicyKind } from "../../src/policies/policy-set.ts";
import { KINDS as ALL } from "../../src/policies/registry.ts";
import { POLICY_SCHEMAS } from "../../src/policies/schemas.ts";
import type { Phase } from "../../src/trace/events.ts";
import { ROUTE_BACKEND_KINDS } from "../../src/translation/schema/policies.ts";
import { type ConfigReference, cell, kebabCase, policyPage } from "./config-docs.ts";
import { generatedPart } from "./generated-part.ts";

const PHASES: readonly Phase[] = ["gateway", "route", "backend"];
export const KINDS = Object.keys(POLICY_SCHEMAS).sort() as PolicyKind[];

const OF_ROUTES: ReadonlySet<PolicyKind> = new Set(ROUTE_BACKEND_KINDS);

/** Path of a page → its content. `readFile` gives a kind's example and the part of the overview that is written by hand. */
export function policyPages(
  reference: ConfigReference,
  readFile: (path: string) => string,
): Readonly<Record<string, string>> {
  const overviewPath = "docs/policies/README.md";
  const pages = KINDS.map((kind) => [`docs/${policyPage(kind)}`, page(kind, reference, readFile)] as const);
  const shadowPath = "docs/shadow.md";
  return {
    [overviewPath]: overview(readFile(overviewPath), reference),
    [shadowPath]: generatedPart(shadowPath, readFile(shadowPath), "policies", shadowTable()),
    ...Object.fromEntries(pages),
  };
}

/** Which kinds can be in shadow. Those that decide nothing have a line in common. */
function shadowTable(): string {
  const kinds = KINDS.filter((kind) => isShadowable(kind) || whyNotShadowable(kind) !== undefined);
  const rows = kinds
    .filter((kind) => whyNotShadowable(kind) !== DECIDES_NOTHING)
    .map(
      (kind) =>
        `| [\`${kind}\`](${policyPage(kind)}) | ${isShadowable(kind) ? "yes" : `no: ${whyNotShadowable(kind)}`} |`,
    );
  const others = kinds.filter((kind) => whyNotShadowable(kind) === DECIDES_NOTHING).map((kind) => `\`${kind}\``);
  return `| Policy | In shadow |
|---|---|
${rows.join("\n")}
| ${others.join(", ")} | no: ${DECIDES_NOTHING} |
`;
}

function page(kind: PolicyKind, reference: ConfigReference, readExample: (path: string) => string): string {
  const example = `examples/policies/${kebabCase(kind)}.yaml`;
  const text = readExample(example);
  const needed = /^# env: (\S+)$/m.exec(text)?.[1];
  const env = needed === undefined ? "" : `${needed} `;
  const places = PHASES.filter((phase) => ALL[kind].phases.includes(phase)).map((phase) => place(kind, phase));
  return `# ${kind}

${reference.describe(kind)}

## Where it runs

${places.join("\n")}

In Kubernetes: ${sections(kind)} of a [TracegatePolicy](../crds.md).

${reference.policy(kind)}
## Example

[${example}](../../${example}), which runs as it is, with an echo server as the backend:
\`${env}tracegate quickstart -f ${example}\`.

\`\`\`yaml
${text.trimEnd()}
\`\`\`
`;
}

/** Where a TracegatePolicy has the kind. */
function sections(kind: PolicyKind): string {
  const names = [
    ...(TRAFFIC_KINDS.includes(kind) ? [`\`spec.traffic.${kind}\``] : []),
    ...(BACKEND_KINDS.includes(kind) ? [`\`spec.backend.${kind}\``] : []),
  ];
  return names.join(" or ");
}

function place(kind: PolicyKind, phase: Phase): string {
  const request = neighbours(kind, REQUEST_ORDER[phase]);
  const response = neighbours(kind, RESPONSE_ORDER[phase]);
  const final: readonly PolicyKind[] = FINAL_ORDER[phase];
  const sides = [
    request === undefined ? [] : [`requests ${request}`],
    response === undefined ? [] : [`responses ${response}`],
    final.includes(kind) ? ["responses after the policies of all phases"] : [],
  ].flat();
  const what = sides.length === 0 ? "a setting of the backend's connections" : sides.join("; ");
  const written = phase === "backend" && OF_ROUTES.has(kind) ? " A route may set it for all of its backends." : "";
  return `- Phase \`${phase}\`: ${what}.${written}`;
}

function neighbours(kind: PolicyKind, order: readonly PolicyKind[]): string | undefined {
  const at = order.indexOf(kind);
  if (at === -1) return undefined;
  const before = order[at - 1];
  const after = order[at + 1];
  const words = [
    before === undefined ? "first" : `after \`${before}\``,
    after === undefined ? "last" : `before \`${after}\``,
  ];
  return order.length === 1 ? "alone" : words.join(", ");
}

/** docs/policies/README.md with its table of policies and their order. */
function overview(current: string, reference: ConfigReference): string {
  const rows = KINDS.map((kind) => {
    const phases = ALL[kind].phases.join(", ");
    return `| [\`${kind}\`](${kebabCase(kind)}.md) | ${phases} | ${cell(reference.describe(kind))} |`;
  });
  const orders = PHASES.flatMap((phase) => [
    `- ${phase}, requests: ${REQUEST_ORDER[phase].map((kind) => `\`${kind}\``).join(" → ") || "nothing"}`,
    `- ${phase}, responses: ${RESPONSE_ORDER[phase].map((kind) => `\`${kind}\``).join(" → ") || "nothing"}`,
  ]);
  const final = PHASES.flatMap((phase) => FINAL_ORDER[phase]).map((kind) => `\`${kind}\``);
  const table = `| Policy | Phases | |\n|---|---|---|\n${rows.join("\n")}`;
  const order = `## Order

Policies run in this order, regardless of their order in the file; \`src/policies/order.ts\` has the reasons.

${orders.join("\n")}
- responses, after those of all phases: ${final.join(" → ")}`;
  return generatedPart("docs/policies/README.md", current, "policies and their order", `${table}\n\n${order}\n`);
}

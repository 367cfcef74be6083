import { z } from "zod";
import { ROUTE_BACKEND_KINDS } from "../../src/config/schema/policies.ts";
import { REQUEST_ORDER, RESPONSE_ORDER } from "../../src/policies/order.ts";
import type { PolicyKind } from "../../src/policies/policy-set.ts";
import { REGISTRY } from "../../src/policies/registry.ts";
import { POLICY_SCHEMAS } from "../../src/policies/schemas.ts";
import type { Phase } from "../../src/trace/events.ts";
import { schemaSections } from "./config-docs.ts";
import type { JsonSchema } from "./config-schema.ts";

const PHASES: readonly Phase[] = ["gateway", "route", "backend"];
const KINDS = Object.keys(POLICY_SCHEMAS).sort() as PolicyKind[];

const OF_ROUTES: ReadonlySet<PolicyKind> = new Set(ROUTE_BACKEND_KINDS);

/** docs/policies/: a page for each kind of policy and one about all of them. `readExample` gives a kind's example. */
export function policyPages(readExample: (path: string) => string): Readonly<Record<string, string>> {
  const pages = KINDS.map((kind) => [`docs/policies/${fileOf(kind)}.md`, page(kind, readExample)] as const);
  return { "docs/policies/README.md": overview(), ...Object.fromEntries(pages) };
}

/** Path of the runnable example of a kind. */
export function examplePath(kind: PolicyKind): string {
  return `examples/policies/${fileOf(kind)}.yaml`;
}

/** `backendTLS` → `backend-tls` */
function fileOf(kind: PolicyKind): string {
  return kind.replace(/([a-z])([A-Z])/g, "$1-$2").toLowerCase();
}

function page(kind: PolicyKind, readExample: (path: string) => string): string {
  const schema = z.toJSONSchema(POLICY_SCHEMAS[kind], { io: "input", target: "draft-2020-12" }) as JsonSchema;
  const example = examplePath(kind);
  const text = readExample(example);
  const needed = /^# env: (\S+)$/m.exec(text)?.[1];
  const env = needed === undefined ? "" : `${needed} `;
  const places = PHASES.filter((phase) => REGISTRY[kind].phases.includes(phase)).map((phase) => place(kind, phase));
  return `# ${kind}

${schema.description ?? ""}

## Where it runs

${places.join("\n")}

${schemaSections(kind, schema)}
## Example

[${example}](../../${example}), which runs as it is, with an echo server for its backend:
\`${env}tracegate quickstart -f ${example}\`.

\`\`\`yaml
${text.trimEnd()}
\`\`\`
`;
}

function place(kind: PolicyKind, phase: Phase): string {
  const request = neighbours(kind, REQUEST_ORDER[phase]);
  const response = neighbours(kind, RESPONSE_ORDER[phase]);
  const sides = [
    request === undefined ? [] : [`requests ${request}`],
    response === undefined ? [] : [`responses ${response}`],
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

function overview(): string {
  const rows = KINDS.map((kind) => {
    const { description = "" } = z.toJSONSchema(POLICY_SCHEMAS[kind], { io: "input" }) as JsonSchema;
    const phases = REGISTRY[kind].phases.join(", ");
    return `| [\`${kind}\`](${fileOf(kind)}.md) | ${phases} | ${description.replaceAll("|", "\\|").replaceAll("\n", " ")} |`;
  });
  const orders = PHASES.flatMap((phase) => [
    `- ${phase}, requests: ${REQUEST_ORDER[phase].map((kind) => `\`${kind}\``).join(" → ") || "nothing"}`,
    `- ${phase}, responses: ${RESPONSE_ORDER[phase].map((kind) => `\`${kind}\``).join(" → ") || "nothing"}`,
  ]);
  return `# Policies

Policies of a gateway run before the route is known, those of a route once it is, those of a backend for each call. Written
inline they belong to the listener, route or backend that they stand in; in \`policies[]\` they name their target. Where
several of a kind meet, the more specific one wins; rules of \`authorization\` add up.

Calls that the gateway itself makes, to the services that policies ask and to mirrors, have policies too: of those of a named
backend, of those that \`policies[]\` attaches to a backend or service, and of the \`policies\` beside the name of a service hold
\`backendTLS\`, \`http.requestTimeout\`, \`tcp\`, \`backendTunnel\`, \`backendAuth\`, \`transformations.request\` and \`requestHeaderModifier\`. The others are for
requests of clients. When a call cannot get its credentials, it counts as one that the service has not answered.

| Policy | Phases | |
|---|---|---|
${rows.join("\n")}

## Order

Whatever order a file names them in, they run in this one; \`src/policies/order.ts\` has the reasons.

${orders.join("\n")}
`;
}

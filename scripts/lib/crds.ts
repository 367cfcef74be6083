/** The CustomResourceDefinitions in install/helm/tracegate/crds/, made from the zod schemas in src/controller/crd. */
import { stringify } from "yaml";
import { z } from "zod";
import { backendSpec } from "../../src/controller/crd/backend.ts";
import { parametersSpec } from "../../src/controller/crd/parameters.ts";
import {
  BACKEND_KINDS,
  FRONTEND_FIELDS,
  PRE_ROUTING_KINDS,
  policyFrame,
  SECTION_TARGETS,
  SECTIONS,
  type Section,
  TARGET_KINDS,
  TRAFFIC_KINDS,
  trafficPhase,
} from "../../src/controller/crd/policy.ts";
import { backendRef, TLS_FILES } from "../../src/controller/crd/references.ts";
import { TRACEGATE_GROUP } from "../../src/kube/objects.ts";
import { RESOURCES } from "../../src/kube/resources.ts";
import type { PolicyKind } from "../../src/policies/policy-set.ts";
import { POLICY_SCHEMAS } from "../../src/policies/schemas.ts";
import type { JsonSchema } from "./config-schema.ts";
import { mapValues, type Rule, type Structural, structural } from "./structural.ts";

type CustomKind = "TracegatePolicy" | "TracegateBackend" | "TracegateParameters";
export const CUSTOM_KINDS: readonly CustomKind[] = ["TracegatePolicy", "TracegateBackend", "TracegateParameters"];

/** Descriptions as the schemas carry them, without names: every shape is repeated where it is used. */
class Descriptions extends z.core.$ZodRegistry<z.core.GlobalMeta> {
  override get<S extends z.core.$ZodType>(schema: S): z.core.$replace<z.core.GlobalMeta, S> | undefined {
    const known = z.globalRegistry.get(schema);
    if (known === undefined) return undefined;
    const { id: _id, ...others } = known;
    return others as z.core.$replace<z.core.GlobalMeta, S>;
  }
}

function jsonOf(schema: z.ZodType): JsonSchema {
  const options = { io: "input", unrepresentable: "any", metadata: new Descriptions(), reused: "inline" } as const;
  return z.toJSONSchema(schema, options) as JsonSchema;
}

const BACKEND_REF = {
  ...jsonOf(backendRef),
  description: "A Service, or a TracegateBackend with a fixed address; in another namespace with a ReferenceGrant.",
};
/** A text or a reference to one, which no single type of Kubernetes describes. */
const textOr = (description = "A text."): JsonSchema => ({
  description: `${description
    .replace(/PEM file of/, "PEM of")
    .split(". ")[0]
    ?.replace(/\.$/, "")}. A text, \`{secretKeyRef: {name, key}}\` or \`{configMapKeyRef: {name, key}}\`.`,
});

/** A schema of the configuration file with what a cluster has in place of files and names of services. */
function inCluster(schema: JsonSchema, path: readonly string[]): JsonSchema {
  const field = path.at(-1) ?? "";
  if (path.at(-2) === "backendTLS" && TLS_FILES.includes(field)) return textOr(schema.description);
  if (path.includes("oidc") && field === "clientSecret") return textOr(schema.description);
  if (path.includes("apiKey") && field === "key") return textOr("The key");
  if (takesFile(schema)) {
    const text = textOr(schema.description ?? "A text");
    return takesUrl(schema) ? { description: `${text.description?.replace(/\.$/, "")} or \`{url}\`.` } : text;
  }
  const { properties, anyOf, items, additionalProperties } = schema;
  const fields = properties && rename(properties);
  // Policies of calls have the fields of `backend`; described at every call they would make up most of the schema.
  if (fields !== undefined && fields.backendRef !== undefined && fields.policies !== undefined)
    fields.policies = {
      type: "object",
      additionalProperties: {},
      description: "Policies of the calls: fields of `backend` such as backendTLS, backendAuth and http.",
    };
  return {
    ...schema,
    ...(fields !== undefined && {
      properties: Object.fromEntries(
        Object.entries(fields).map(([name, each]) => [name, inCluster(each, [...path, name])]),
      ),
    }),
    ...(anyOf !== undefined && { anyOf: anyOf.map((each) => inCluster(each, path)) }),
    ...(items !== undefined && { items: inCluster(items, path) }),
    ...(typeof additionalProperties === "object" && { additionalProperties: inCluster(additionalProperties, path) }),
  };
}

/** `service` and `backend` become `backendRef`. */
function rename(properties: Readonly<Record<string, JsonSchema>>): Record<string, JsonSchema> {
  const { service, backend, ...others } = properties;
  if (service === undefined || backend === undefined || others.host === undefined) return { ...properties };
  return { ...others, backendRef: BACKEND_REF };
}

function takesFile({ anyOf = [] }: JsonSchema): boolean {
  return anyOf.some((each) => isOnly(each, "file") || takesFile(each));
}

function takesUrl({ anyOf = [] }: JsonSchema): boolean {
  return anyOf.some((each) => isOnly(each, "url") || takesUrl(each));
}

function isOnly({ properties }: JsonSchema, name: string): boolean {
  return properties !== undefined && Object.keys(properties).join() === name;
}

/** Adds the rule of every place that names a service. */
function withServiceRules(schema: Structural): Structural {
  const { properties, items, additionalProperties } = schema;
  const isService = properties?.backendRef !== undefined && properties.host !== undefined;
  const rule = "has(self.host) != has(self.backendRef)";
  const validations: readonly Rule[] = [
    {
      rule: properties?.conditional === undefined ? rule : `has(self.conditional) || ${rule}`,
      message: "exactly one of host and backendRef is required",
    },
  ];
  return {
    ...schema,
    ...(properties !== undefined && { properties: mapValues(properties, withServiceRules) }),
    ...(items !== undefined && { items: withServiceRules(items) }),
    ...(additionalProperties !== undefined && { additionalProperties: withServiceRules(additionalProperties) }),
    ...(isService && { "x-kubernetes-validations": validations }),
  };
}

function kindsSchema(kinds: readonly PolicyKind[]): Record<string, Structural> {
  return Object.fromEntries(
    kinds.map((kind) => [kind, withServiceRules(structural(inCluster(jsonOf(POLICY_SCHEMAS[kind].schema), [kind])))]),
  );
}

function policySpec(): Structural {
  const frame = structural(jsonOf(policyFrame));
  const { targetRefs, targetSelectors, strategy } = frame.properties ?? {};
  const frontend = Object.fromEntries(
    Object.entries(FRONTEND_FIELDS).map(([field, schema]) => [
      field,
      withServiceRules(structural(inCluster(jsonOf(schema), [field]))),
    ]),
  );
  const traffic = kindsSchema(TRAFFIC_KINDS);
  // Rules do not see fields of several types; the controller reports those.
  const postRouting = TRAFFIC_KINDS.filter(
    (kind) => !PRE_ROUTING_KINDS.includes(kind) && traffic[kind]?.["x-kubernetes-preserve-unknown-fields"] !== true,
  );
  const phase: Structural = { ...structural(jsonOf(trafficPhase)), default: "PostRouting" };
  return {
    type: "object",
    properties: {
      targetRefs: described(
        targetRules(targetRefs),
        "What the policy is attached to. Up to 16 objects of its namespace. A policy that routes name as a filter needs none.",
      ),
      targetSelectors: described(
        targetRules(targetSelectors),
        "The same by labels, for objects of the policy's namespace.",
      ),
      strategy: described(strategy, "How the policy combines with those of wider and narrower targets."),
      frontend: {
        type: "object",
        description: "Settings of client connections, on Gateways and their listeners.",
        properties: frontend,
        minProperties: 1,
      },
      traffic: {
        type: "object",
        description: "Policies of requests, on Gateways, ListenerSets, HTTPRoutes and GRPCRoutes.",
        properties: { phase, ...traffic },
        // With the phase, which has a default.
        minProperties: 2,
        "x-kubernetes-validations": [
          {
            rule: `self.phase != 'PreRouting' || !(${postRouting.map(has).join(" || ")})`,
            message: `before a route is selected (phase PreRouting) only ${PRE_ROUTING_KINDS.join(", ")} can run`,
          },
        ],
      },
      backend: {
        type: "object",
        description: "Policies of calls to backends, on any target: there, or for all backends of a Gateway or route.",
        properties: kindsSchema(BACKEND_KINDS),
        minProperties: 1,
      },
    },
    "x-kubernetes-validations": [
      {
        rule: "!has(self.targetRefs) || !has(self.targetSelectors)",
        message: "only one of targetRefs and targetSelectors may be set",
      },
      { rule: SECTIONS.map(has).join(" || "), message: "one of frontend, traffic, backend is required" },
      ...SECTIONS.map(sectionRule),
      {
        rule: everyTarget("!has(self.traffic) || self.traffic.phase != 'PreRouting'", ["Gateway", "ListenerSet"]),
        message: "the phase PreRouting is for policies of Gateways and ListenerSets",
      },
    ],
  };
}

function has(field: string): string {
  return `has(self.${field})`;
}

function sectionRule(section: Section): Rule {
  const kinds = SECTION_TARGETS[section];
  return {
    rule: everyTarget(`!has(self.${section})`, kinds),
    message: `${section} can be attached to ${kinds.join(", ")} only`,
  };
}

/** `unless`, or every target is of one of the kinds. */
function everyTarget(unless: string, kinds: readonly string[]): string {
  const list = `[${kinds.map((kind) => `'${kind}'`).join(", ")}]`;
  const all = (field: string): string => `(!has(self.${field}) || self.${field}.all(t, t.kind in ${list}))`;
  return `${unless} || (${all("targetRefs")} && ${all("targetSelectors")})`;
}

function targetRules(targets: Structural | undefined): Structural | undefined {
  if (targets?.items === undefined) return targets;
  const groups = new Map<string, string[]>();
  for (const [kind, group] of Object.entries(TARGET_KINDS)) groups.set(group, [...(groups.get(group) ?? []), kind]);
  const group = Array.from(
    groups,
    ([name, kinds]) => `(self.group == '${name}' && self.kind in [${kinds.map((kind) => `'${kind}'`).join(", ")}])`,
  ).join(" || ");
  const labels = targets.items.properties?.matchLabels;
  const properties = {
    ...targets.items.properties,
    ...(labels !== undefined && { matchLabels: { ...labels, maxProperties: 16 } }),
  };
  return {
    ...targets,
    items: {
      ...targets.items,
      properties,
      "x-kubernetes-validations": [
        { rule: group, message: "group does not have this kind" },
        {
          rule: "!has(self.sectionName) || self.kind != 'TracegateBackend'",
          message: "a TracegateBackend has no sections; remove sectionName",
        },
      ],
    },
  };
}

function described(schema: Structural | undefined, description: string): Structural {
  return { ...schema, description };
}

function backendSchema(): Structural {
  const spec = structural(jsonOf(backendSpec));
  const { static: fixed, dynamicForwardProxy } = spec.properties ?? {};
  return {
    type: "object",
    properties: {
      static: {
        ...fixed,
        "x-kubernetes-validations": [
          {
            rule: "has(self.unixPath) ? !has(self.host) && !has(self.port) : has(self.host) && has(self.port)",
            message: "either host and port or unixPath is required",
          },
        ],
      },
      dynamicForwardProxy: described(dynamicForwardProxy, dynamicForwardProxy?.description ?? ""),
      policies: {
        type: "object",
        description: "Policies of calls to the backend; take precedence over those that are attached to it.",
        properties: kindsSchema(BACKEND_KINDS),
      },
    },
    "x-kubernetes-validations": [
      {
        rule: "has(self.static) != has(self.dynamicForwardProxy)",
        message: "exactly one of static and dynamicForwardProxy is required",
      },
    ],
  };
}

function parametersSchema(): Structural {
  return {
    ...structural(jsonOf(parametersSpec)),
    "x-kubernetes-validations": [
      {
        rule: "!has(self.shutdown) || (has(self.shutdown.min) ? self.shutdown.min : 10) <= (has(self.shutdown.max) ? self.shutdown.max : 60)",
        message: "shutdown.min must not be greater than shutdown.max",
      },
      {
        rule: "!has(self.mergeGateways) || !has(self.mergeGateways.namespaces) || has(self.mergeGateways.namespaces.selector) == (has(self.mergeGateways.namespaces.from) && self.mergeGateways.namespaces.from == 'Selector')",
        message: "selector and from: Selector belong together",
      },
    ],
  };
}

const text = (maxLength: number): Structural => ({ type: "string", maxLength });

/** metav1.Condition */
const CONDITIONS = {
  type: "array",
  maxItems: 8,
  "x-kubernetes-list-type": "map",
  "x-kubernetes-list-map-keys": ["type"],
  items: {
    type: "object",
    required: ["lastTransitionTime", "message", "reason", "status", "type"],
    properties: {
      type: text(316),
      status: { type: "string", enum: ["True", "False", "Unknown"] },
      reason: text(1024),
      message: text(32_768),
      observedGeneration: { type: "integer", format: "int64" },
      lastTransitionTime: { type: "string", format: "date-time" },
    },
  },
};

/** PolicyStatus of the Gateway API. */
const ANCESTORS = {
  type: "array",
  maxItems: 16,
  items: {
    type: "object",
    required: ["ancestorRef", "controllerName"],
    properties: {
      ancestorRef: {
        type: "object",
        required: ["name"],
        properties: {
          group: text(253),
          kind: text(63),
          namespace: text(63),
          name: text(253),
          sectionName: text(253),
          port: { type: "integer", format: "int32" },
        },
      },
      controllerName: text(253),
      conditions: CONDITIONS,
    },
  },
};

interface Definition {
  readonly shortName: string;
  readonly description: string;
  readonly spec: () => Structural;
  /** Fields of the status; absent: it has none. */
  readonly status?: Readonly<Record<string, unknown>>;
  readonly columns: readonly { readonly name: string; readonly type: string; readonly jsonPath: string }[];
}

const condition = (name: string, at: string) => ({
  name,
  type: "string",
  jsonPath: `${at}.conditions[?(@.type=="${name}")].status`,
});
const AGE = { name: "Age", type: "date", jsonPath: ".metadata.creationTimestamp" };

const DEFINITIONS: Readonly<Record<CustomKind, Definition>> = {
  TracegatePolicy: {
    shortName: "tgp",
    description: "Policies that are attached to Gateways, routes, Services and backends.",
    spec: policySpec,
    status: { ancestors: ANCESTORS },
    columns: [
      condition("Accepted", ".status.ancestors[*]"),
      condition("Attached", ".status.ancestors[*]"),
      { name: "Target", type: "string", jsonPath: ".spec.targetRefs[*].name" },
      AGE,
    ],
  },
  TracegateBackend: {
    shortName: "tgb",
    description: "A destination that is not a Service of the cluster.",
    spec: backendSchema,
    status: { conditions: CONDITIONS },
    columns: [
      condition("Accepted", ".status"),
      { name: "Host", type: "string", jsonPath: ".spec.static.host" },
      { name: "Port", type: "integer", jsonPath: ".spec.static.port" },
      AGE,
    ],
  },
  TracegateParameters: {
    shortName: "tgparams",
    description: "How the proxies of Gateways are deployed.",
    spec: parametersSchema,
    columns: [{ name: "Workload", type: "string", jsonPath: ".spec.workload.kind" }, AGE],
  },
};

/** The structural schema of `spec`. */
export function specOf(kind: CustomKind): Structural {
  return DEFINITIONS[kind].spec();
}

/** The newest first: the one that kubectl shows and explains. */
const VERSIONS = ["v1beta1", "v1alpha1"] as const;

/** Described once: with descriptions in each version, `kubectl apply` could not keep the definition in an annotation. */
function withoutDescriptions(schema: object): unknown {
  const text = JSON.stringify(schema, (key, value: unknown) =>
    key === "description" && typeof value === "string" ? undefined : value,
  );
  return JSON.parse(text);
}

/** The CustomResourceDefinition of a kind. */
export function customResource(kind: CustomKind): Readonly<Record<string, unknown>> {
  const { shortName, description, spec, status, columns } = DEFINITIONS[kind];
  const { plural } = RESOURCES[kind];
  const schema = {
    type: "object",
    description,
    required: ["spec"],
    properties: {
      apiVersion: { type: "string" },
      kind: { type: "string" },
      metadata: { type: "object" },
      spec: spec(),
      ...(status !== undefined && { status: { type: "object", properties: status } }),
    },
  };
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `${plural}.${TRACEGATE_GROUP}` },
    spec: {
      group: TRACEGATE_GROUP,
      scope: "Namespaced",
      names: {
        kind,
        listKind: `${kind}List`,
        plural,
        singular: kind.toLowerCase(),
        shortNames: [shortName],
        categories: ["tracegate"],
      },
      // The schemas are equal, so that the API server converts by replacing the name of the version.
      conversion: { strategy: "None" },
      versions: VERSIONS.map((name) => ({
        name,
        served: true,
        // What the controller reads, also before an upgrade and after a rollback.
        storage: name === RESOURCES[kind].version,
        additionalPrinterColumns: columns,
        ...(status !== undefined && { subresources: { status: {} } }),
        schema: { openAPIV3Schema: name === VERSIONS[0] ? schema : withoutDescriptions(schema) },
      })),
    },
  };
}

const HEAD = "# Generated by `npm run generate` from src/controller/crd. Do not edit.\n";

/** Path relative to the checkout → content. */
export function crdFiles(): (readonly [path: string, text: string])[] {
  return CUSTOM_KINDS.map((kind) => [
    `install/helm/tracegate/crds/${RESOURCES[kind].plural}.yaml`,
    HEAD + stringify(customResource(kind), { lineWidth: 0, aliasDuplicateObjects: false }),
  ]);
}

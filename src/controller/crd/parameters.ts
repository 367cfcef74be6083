/**
 * TracegateParameters (tracegate.dev/v1alpha1, docs/crds.md#tracegateparameters): how the proxies of a Gateway or of a
 * GatewayClass are deployed. The deployer applies them.
 */
import { z } from "zod";
import { fieldsOf } from "../../base/fields.ts";
import { parseLogFilter } from "../../base/log-filter.ts";
import { parsedBy } from "../../policies/schema/checks.ts";
import type { Report } from "../../translation/problems/problem.ts";
import { frontendHttp, frontendTcp, proxyProtocol } from "../../translation/schema/frontend.ts";
import { settings } from "../../translation/schema/settings.ts";
import { type Parsed, parseAt, problemText } from "./parse-spec.ts";

const labels = z.record(z.string(), z.string());
/** Parts of Kubernetes objects, which the API server validates when they are applied. */
const object = z.record(z.string(), z.unknown());

const overlay = (kind: string) =>
  z
    .strictObject({
      metadata: z
        .strictObject({
          labels: labels.optional().describe("Labels to add."),
          annotations: labels.optional().describe("Annotations to add."),
        })
        .optional()
        .describe("Labels and annotations."),
      spec: object.optional().describe(`Merged into the spec of the ${kind} (strategic merge patch).`),
    })
    .optional();

const seconds = z.int().min(0).max(86_400);

const selector = z
  .strictObject({
    matchLabels: labels.optional().describe("Labels that a namespace must have."),
    matchExpressions: z
      .array(
        z.strictObject({
          key: z.string().min(1).describe("Name of a label."),
          operator: z.enum(["In", "NotIn", "Exists", "DoesNotExist"]).describe("What is required of the label."),
          values: z.array(z.string()).optional().describe("For `In` and `NotIn`."),
        }),
      )
      .optional()
      .describe("Further conditions, all of which must hold."),
  })
  .describe("For `Selector`: the labels of these namespaces.");

const mergeGateways = z
  .strictObject({
    namespaces: z
      .strictObject({
        from: z
          .enum(["All", "Selector", "Same"])
          .default("Same")
          .describe("`Same`: the namespace of these parameters. Default: `Same`."),
        selector: selector.optional(),
      })
      .refine(({ from, selector }) => (from === "Selector") === (selector !== undefined), {
        message: "selector and from: Selector belong together",
      })
      .prefault({})
      .describe("Whose Gateways may share the proxies."),
    frontend: z
      .strictObject({
        http: frontendHttp.optional().describe("Limits and timeouts of client connections."),
        tcp: frontendTcp.optional().describe("Socket options of client connections."),
        proxyProtocol: proxyProtocol.optional(),
      })
      .optional()
      .describe("Settings of client connections, for all ports. Policies of single Gateways cannot change them."),
  })
  .describe(
    "The Gateways of the class that refers to these parameters share one set of proxies, which run in the namespace of the parameters. In the parameters of a single Gateway it is an error.",
  );

export const parametersSpec = z
  .strictObject({
    mergeGateways: mergeGateways.optional(),
    workload: z
      .strictObject({
        kind: z
          .enum(["Deployment", "DaemonSet"])
          .optional()
          .describe("Kind of the workload that runs the proxies. Default: `Deployment`."),
      })
      .optional()
      .describe("What runs the proxies."),
    logging: z
      .strictObject({
        level: z
          .string()
          .min(1)
          .check(parsedBy(parseLogFilter))
          .optional()
          .describe("Log level: `info`, or modules such as `info,request=off`. Default: `info`."),
        format: z.enum(["text", "json"]).optional().describe("Format of log lines. Default: `json`."),
      })
      .optional()
      .describe("The log of the proxies."),
    rawConfig: object
      .optional()
      .describe(
        "Fields of `config` of a configuration file, merged into those of the proxies. Read when a proxy starts.",
      ),
    image: z
      .strictObject({
        registry: z.string().min(1).optional().describe("Such as `ghcr.io`."),
        repository: z.string().min(1).optional().describe("Such as `tracegate/tracegate`."),
        tag: z.string().min(1).optional().describe("Tag of the image."),
        digest: z
          .string()
          .regex(/^sha256:[0-9a-f]{64}$/, { message: "not a digest; write sha256: and 64 hexadecimal digits" })
          .optional()
          .describe("Digest of the image, `sha256:…`; takes precedence over the tag."),
        pullPolicy: z.enum(["Always", "IfNotPresent", "Never"]).optional().describe("When nodes pull the image."),
      })
      .optional()
      .describe("Image of the proxies. Fields that are not set come from the settings of the controller."),
    env: z
      .array(
        z.strictObject({
          name: z.string().min(1).describe("Name of the variable."),
          value: z.string().optional().describe("Value of the variable."),
          valueFrom: object.optional().describe("Source of the value (EnvVarSource)."),
        }),
      )
      .max(256)
      .optional()
      .describe("Environment variables of the proxies; replace those of the controller with the same name."),
    resources: object.optional().describe("Resources of the container (ResourceRequirements)."),
    shutdown: z
      .strictObject({
        min: seconds
          .optional()
          .describe("Seconds during which a proxy that shuts down serves traffic as usual. Default: 10."),
        max: seconds.optional().describe("Seconds after which a proxy that shuts down is stopped. Default: 60."),
      })
      .refine(({ min = 10, max = 60 }) => min <= max, { message: "min must not be greater than max" })
      .optional()
      .describe("How proxies shut down."),
    deployment: overlay("Deployment").describe("Changes to the Deployment."),
    daemonSet: overlay("DaemonSet").describe("Changes to the DaemonSet."),
    service: overlay("Service").describe("Changes to the Service."),
    serviceAccount: overlay("ServiceAccount").describe("Changes to the ServiceAccount."),
    podDisruptionBudget: overlay("PodDisruptionBudget").describe("Creates a PodDisruptionBudget."),
    horizontalPodAutoscaler: overlay("HorizontalPodAutoscaler").describe(
      "Creates a HorizontalPodAutoscaler, which then owns `replicas`.",
    ),
  })
  .describe("How the proxies of Gateways are deployed.");

export type Parameters = z.output<typeof parametersSpec>;
export type MergeGateways = z.output<typeof mergeGateways>;

/**
 * `mergeGateways` of a spec of which other fields may be invalid: these stop a deployment, but must not take Gateways apart. Undefined: not
 * set, or invalid.
 */
export function parseMergeGateways(spec: unknown): MergeGateways | undefined {
  const written = fieldsOf(spec).mergeGateways;
  return written === undefined ? undefined : mergeGateways.safeParse(written).data;
}

/** Parses the spec of TracegateParameters. `rawConfig` is checked as the proxies will check it. */
export function parseParameters(spec: unknown): Parsed<Parameters> {
  const problems: string[] = [];
  const report: Report = (path, problem, key) => {
    problems.push(problemText(["spec", ...path], problem, key));
  };
  const value = parseAt(parametersSpec, spec ?? {}, [], report);
  if (value?.rawConfig !== undefined) parseAt(settings, value.rawConfig, ["rawConfig"], report);
  const [first, ...others] = problems;
  if (value !== undefined && first === undefined) return { ok: true, value };
  return { ok: false, problems: [first ?? "spec: is invalid", ...others] };
}

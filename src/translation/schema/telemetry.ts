import { z } from "zod";
import { calledService } from "../../policies/schema/call.ts";
import { celText, condition, expression } from "../../policies/schema/cel.ts";
import { parsedBy } from "../../policies/schema/checks.ts";
import { duration } from "../../policies/schema/fields.ts";
import { parsePathAndQuery } from "../../policies/shared/url-change.ts";

/** Which requests and connections are logged. */
export const logFilter = condition("response", { true: "logs everything", false: "logs nothing" });

/** Names to CEL that is evaluated when a request is over. */
const fields = z.record(z.string(), expression("response"));
const names = z.array(z.string());
const attributeEdits = z.strictObject({
  add: fields.optional().describe("Attribute name to CEL, evaluated at the end of the request."),
  remove: names.optional().describe("Names of attributes to leave out."),
});

/** CEL for an attribute of the resource. */
const resource = celText((text, cel) => {
  const others = [...cel.compileExpression(text, "network").reads].filter((name) => name !== "env");
  if (others.length > 0)
    throw new Error(`reads ${others.join(", ")}; a resource is the same for all requests and can read env only`);
});

const path = z.string().check(parsedBy((text) => parsePathAndQuery(["path"], text)));

/** Fields of what names a collector. */
function collector(defaultPath: string) {
  return {
    ...calledService("Timeout of one export."),
    timeout: duration
      .optional()
      .describe("Timeout of one export. Default: `http.requestTimeout` of the effective policies, otherwise 10s."),
    protocol: z.enum(["grpc", "http"]).default("grpc").describe("OTLP over gRPC, or binary protobuf over HTTP."),
    path: path.default(defaultPath).describe("Path of exports over HTTP."),
  };
}

const sampling = z.union([z.boolean(), z.number().min(0).max(1), expression("request")]);

/** What `config.tracing` has too. */
const samplings = {
  clientSampling: sampling
    .optional()
    .describe(
      "Which requests with a `traceparent` header are sampled: `true` or `false`, a share from 0 to 1, or CEL that gives one " +
        "of these. Default: all.",
    ),
  randomSampling: sampling.optional().describe("The same for requests without a `traceparent` header. Default: none."),
};

export const tracing = z
  .strictObject({
    ...collector("/v1/traces"),
    attributes: fields
      .default({})
      .describe("Attribute name to CEL, evaluated at the end of the request. `span.name` sets the name of the span."),
    resources: z
      .record(z.string(), resource)
      .default({})
      .describe("Resource attributes, such as `service.name`: name to CEL over `env`."),
    remove: names.default([]).describe("Names of attributes to leave out."),
    semanticConventions: z
      .enum(["stable", "old"])
      .optional()
      .describe(
        "Names of spans and attributes: the stable ones of OpenTelemetry, such as `http.request.method` (default), or the old ones, which " +
          "are those of the access log, such as `http.method`.",
      ),
    ...samplings,
    filter: condition("response", { true: "exports all spans", false: "exports no span" })
      .optional()
      .describe("CEL. Only spans of requests for which it is true, or fails, are exported."),
  })
  .meta({
    id: "Tracing",
    description: "Exports spans of sampled requests to a collector by OTLP, and propagates the trace to backends.",
  });

export const accessLogExport = z
  .strictObject({
    ...collector("/v1/logs"),
    filter: logFilter.optional().describe("Default: that of the access log."),
    fields: attributeEdits.optional().describe("Default: those of the access log."),
  })
  .meta({ id: "AccessLogExport", description: "Exports the access log to a collector by OTLP." });

export type TracingInput = z.output<typeof tracing>;
export type AccessLogExportInput = z.output<typeof accessLogExport>;

/** `config.tracing`, which `frontendPolicies.tracing` has replaced. */
export const formerTracing = z
  .strictObject({
    otlpEndpoint: z
      .string()
      .optional()
      .describe("URL or `host:port` of the collector. Environment variable: `OTLP_ENDPOINT`."),
    headers: z
      .record(z.string(), z.string())
      .optional()
      .describe("Headers of every export. Environment variable: `OTLP_HEADERS`, comma-separated `name=value` pairs."),
    otlpProtocol: z
      .enum(["grpc", "http"])
      .optional()
      .describe("Default: `grpc`. Environment variable: `OTLP_PROTOCOL`."),
    path: path.optional().describe("Path of exports over HTTP. Default: that of the URL, otherwise `/v1/traces`."),
    fields: attributeEdits.optional().describe("Attributes to add, name to CEL, and names of those to leave out."),
    ...samplings,
  })
  .describe("Former place of `frontendPolicies.tracing`, which wins where both are set.");

/** `config.logging.filter` and `fields`, which `frontendPolicies.accessLog` has replaced. */
export const formerAccessLog = {
  filter: logFilter.optional().describe("Former place of `frontendPolicies.accessLog.filter`, which wins."),
  fields: attributeEdits
    .optional()
    .describe("Former place of `frontendPolicies.accessLog.add` and `remove`, which win."),
};

export type FormerTracingInput = z.output<typeof formerTracing>;

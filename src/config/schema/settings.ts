import { z } from "zod";
import { celText } from "../../policies/shared/cel-schema.ts";
import { duration } from "../../policies/shared/duration-schema.ts";
import { compileLabel, wrongLabelName } from "../../telemetry/custom-labels.ts";
import { MAX_CUSTOM_SERIES } from "../../telemetry/metrics.ts";
import { keepalives } from "./frontend.ts";
import { listenAddress } from "./scalars.ts";
import { formerAccessLog, formerTracing } from "./telemetry.ts";

const MAX_LABELS = 16;

/** A number of threads, or a share of the processors such as `50%`. */
export const WORKER_THREADS = /^\d+(\.\d+)?%?$/;
const workerThreads = z.union([
  z.int().min(1).max(1024),
  z.string().regex(WORKER_THREADS, { message: "write a number or a percentage such as 50%" }),
]);

const level = z
  .union([z.string(), z.array(z.string())])
  .describe("`info`, `info,request=off`, or a list of `module=level`.");

/** CEL for the value of a label. */
const labelValue = celText(compileLabel);

const labelName = z.string().check((context) => {
  const message = wrongLabelName(context.value);
  if (message !== undefined) context.issues.push({ code: "custom", input: context.value, message });
});

const metricLabels = z
  .record(labelName, labelValue)
  .refine((labels) => Object.keys(labels).length <= MAX_LABELS, { message: `has more than ${MAX_LABELS} labels` })
  .describe(
    `Label to CEL, evaluated at the end of a request; \`unknown\` when it fails. A thread keeps ${MAX_CUSTOM_SERIES} series with ` +
      "such values; requests that would need another one count as `other`.",
  );

/** The `config` section: read once, at startup (reference 1.3). */
export const settings = z
  .strictObject({
    enableIpv6: z.boolean().default(true).describe("Whether ports listen on IPv6 addresses too."),
    dns: z
      .strictObject({
        lookupFamily: z
          .enum(["All", "Auto", "V4Preferred", "V4Only", "V6Only"])
          .default("Auto")
          .describe("Kinds of addresses to use; `Auto`: IPv4 first, or IPv4 alone without `enableIpv6`."),
        edns0: z.boolean().optional().describe("The system's resolver decides; accepted for compatibility."),
      })
      .prefault({})
      .describe("How host names of backends are looked up."),
    adminAddr: listenAddress.optional().describe("Admin server; default `localhost:15000`."),
    statsAddr: listenAddress.optional().describe("Metrics server; default port 15020 on all addresses."),
    readinessAddr: listenAddress
      .optional()
      .describe(
        "Readiness server: `GET /healthz/ready`, 503 from the beginning of a shutdown; default port 15021 on all addresses.",
      ),
    workerThreads: workerThreads.optional().describe("Threads that serve traffic; default: one for each processor."),
    connectionTerminationDeadline: duration
      .optional()
      .describe(
        "Longest time for a shutdown, after the minimum: connections are accepted for a moment, at most a quarter of it, then requests in progress are waited for and what is left is cut; default 5s.",
      ),
    connectionMinTerminationDeadline: duration
      .optional()
      .describe("At shutdown, everything is served as usual for this long first; default 0s."),
    logging: z
      .strictObject({
        level: level.default("info"),
        format: z.enum(["text", "json"]).default("text").describe("How a line of the log looks."),
        ...formerAccessLog,
      })
      .prefault({})
      .describe("The log, which goes to standard output."),
    metrics: z
      .strictObject({
        remove: z.array(z.string()).default([]).describe("Names of metrics to leave out."),
        fields: z
          .strictObject({ add: metricLabels.default({}) })
          .prefault({})
          .describe("Further labels of the metrics of requests."),
      })
      .prefault({})
      .describe("Metrics."),
    tracing: formerTracing.optional(),
    histograms: z.literal("classic").default("classic").describe("How durations are counted: in buckets."),
    backend: z
      .strictObject({
        connectTimeout: duration.prefault("10s").describe("Longest wait for a connection."),
        poolIdleTimeout: duration.prefault("90s").describe("An unused connection is closed after this."),
        poolMaxSize: z.int().min(0).optional().describe("Unused connections kept for each target; default: all."),
        keepalives: keepalives.prefault({}).describe("TCP keepalives of connections to backends."),
      })
      .prefault({})
      .describe("Connections to backends."),
    customFunctions: z
      .string()
      .default("")
      .describe(
        "Functions that all expressions may call: `name(a, rest...) { CEL }` and `this.name(a) { CEL }`, one after the other. " +
          "Unlike the rest of `config` they take effect with a reload.",
      ),
    clusterId: z.string().optional().describe("Cluster that this gateway is in; for `routingPreferences` of services."),
    network: z.string().optional().describe("Network that it is in; the same."),
    sensitiveHeaders: z
      .array(z.string())
      .default([])
      .describe(
        "Further headers whose values traces and dumps hide. Always hidden are `authorization`, `cookie` and the like, and every header whose name contains a word such as `token`, `secret`, `password`, `session` or `api-key`.",
      ),
  })
  .describe("Settings of the process, read once at startup.");

export type SettingsInput = z.output<typeof settings>;

import { z } from "zod";
import { celText } from "../../policies/schema/cel.ts";
import { checking } from "../../policies/schema/checks.ts";
import { duration, size } from "../../policies/schema/fields.ts";
import { compileLabel, wrongLabelName } from "../../telemetry/custom-labels.ts";
import { MAX_CUSTOM_SERIES } from "../../telemetry/metrics.ts";
import { keepalives } from "./frontend.ts";
import { locality } from "./locality.ts";
import { listenAddress, network, webOrigin } from "./scalars.ts";
import { formerAccessLog, formerTracing } from "./telemetry.ts";

const MAX_LABELS = 16;

/** A number of threads, or a share of the processors such as `50%`. */
export const WORKER_THREADS = /^\d+(\.\d+)?%?$/;
const workerThreads = z.union([
  z.int().min(1).max(1024),
  z.string().regex(WORKER_THREADS, { message: "write a number or a percentage such as 50%" }),
]);

/** `1%`, as a share from 0 to 1. */
const percentage = z
  .string()
  .regex(/^(100|\d{1,2}(\.\d+)?)%$/, { message: "write a percentage such as 1%, at most 100%" })
  .transform((text) => Number(text.slice(0, -1)) / 100);

const recordBytes = size({ min: 64 * 1024, max: 1024 * 1024 * 1024 });

const level = z
  .union([z.string(), z.array(z.string())])
  .describe("Log level: `info`, `info,request=off`, or a list of `module=level`.");

/** CEL that yields the value of a label. */
const labelValue = celText(compileLabel);

const labelName = z.string().check(checking(wrongLabelName));

const metricLabels = z
  .record(labelName, labelValue)
  .refine((labels) => Object.keys(labels).length <= MAX_LABELS, { message: `has more than ${MAX_LABELS} labels` })
  .describe(
    `Label to CEL, evaluated at the end of a request. A failed expression gives \`unknown\`. Each worker keeps up to ${MAX_CUSTOM_SERIES} series ` +
      "with such labels; further values are counted as `other`.",
  );

/** The `config` section: read once, at startup (docs/configuration.md#config). */
export const settings = z
  .strictObject({
    enableIpv6: z.boolean().default(true).describe("Listens on IPv6 addresses too, if the system has any."),
    dns: z
      .strictObject({
        lookupFamily: z
          .enum(["All", "Auto", "V4Preferred", "V4Only", "V6Only"])
          .default("Auto")
          .describe("Address families to use. `Auto`: IPv4 first, or only IPv4 without `enableIpv6`."),
        denyDomains: z
          .array(z.string().min(1))
          .default([])
          .describe(
            "Domains such as `cluster.local` below which the gateway looks up no names of backends. If any are set, search domains are not used. A controller sets this for its proxies.",
          ),
        denyNetworks: z
          .array(network)
          .default([])
          .describe(
            "Networks such as `10.96.0.0/12`: when names of backends resolve to addresses inside, these are left out, and neither clients of a forward proxy nor objects of a controller can name them. Endpoints of services are not affected. A controller sets this for its proxies.",
          ),
        edns0: z.boolean().optional().describe("Accepted for compatibility; the system resolver decides."),
      })
      .prefault({})
      .describe("How host names of backends are resolved."),
    adminAddr: listenAddress.optional().describe("Address of the admin server. Default: `localhost:15000`."),
    admin: z
      .strictObject({
        reveal: z
          .boolean()
          .default(true)
          .describe("Whether `reveal=true` shows the secrets of requests in traces. false: such a trace gets 403."),
        quit: z
          .boolean()
          .default(true)
          .describe("Whether `POST /quitquitquit` shuts the gateway down. false: it gets 403."),
        browserOrigins: z
          .array(webOrigin)
          .default(["http://localhost:3000", "http://localhost:19000"])
          .describe(
            "Origins of other web pages that may read answers of the admin API (CORS), without changing anything. If the gateway serves on one of them, pages of its backends can read what it has recorded: set `[]`.",
          ),
      })
      .prefault({})
      .describe("What clients of the admin API may do, through the admin server and through `internal` backends."),
    ui: z
      .strictObject({
        enabled: z
          .boolean()
          .default(true)
          .describe("Whether the admin server has the [web view](ui.md) under `/ui/`. false: it gets 403."),
      })
      .prefault({})
      .describe("The web view at the admin server."),
    statsAddr: listenAddress
      .optional()
      .describe("Address of the metrics server. Default: port 15020 on all addresses."),
    readinessAddr: listenAddress
      .optional()
      .describe(
        "Address of the readiness server: `GET /healthz/ready`, 503 as soon as a shutdown begins, and `GET /healthz/live`. Default: port 15021 on all addresses.",
      ),
    workerThreads: workerThreads
      .optional()
      .describe("Number of worker threads, or a share of the processors such as `50%`. Default: one per processor."),
    connectionTerminationDeadline: duration
      .optional()
      .describe(
        "Longest drain after `connectionMinTerminationDeadline`: new connections are accepted for a moment, at most a quarter of it, then requests in progress are finished; what is left at the end is closed. Default: 5s.",
      ),
    connectionMinTerminationDeadline: duration
      .optional()
      .describe("Time at the start of a shutdown during which traffic is served as usual. Default: 0s."),
    logging: z
      .strictObject({
        level: level.default("info"),
        format: z
          .enum(["text", "json", "combined", "common"])
          .default("text")
          .describe(
            "Format of log lines. `combined` and `common` are those of Apache, for the access log only: its fields cannot be changed, and all other lines are `text`.",
          ),
        output: z
          .strictObject({
            file: z
              .string()
              .min(1)
              .describe("Path of the file, relative to this one. It is made with mode 0640; its folder must exist."),
            reopen: z
              .boolean()
              .default(true)
              .describe(
                "Looks every second whether the file has been moved or removed, as logrotate does, and makes it again. SIGUSR2 does so at once, whatever the setting.",
              ),
            maxSize: size({ min: 1024 * 1024 })
              .optional()
              .describe(
                "The gateway rotates the file before it would be larger, at least 1MiB: `access.log` becomes `access.log.1`. Default: never.",
              ),
            keep: z.int().min(0).max(1000).default(5).describe("Rotated files that are kept, with `maxSize`."),
          })
          .optional()
          .describe(
            "A file for the access log. Lines that cannot be written, for example because the disk is full, are dropped and counted; traffic continues. Default: standard output, where all other lines always go.",
          ),
        reasons: z
          .enum(["full", "code", "off"])
          .default("full")
          .describe(
            "What `error` says in access logs: `full`: the error and what decided, such as the nearest route or a rule with its values, redacted, and where that was written; `code`: the code of the error; `off`: nothing.",
          ),
        ...formerAccessLog,
      })
      .prefault({})
      .describe("The log."),
    metrics: z
      .strictObject({
        remove: z.array(z.string()).default([]).describe("Names of metrics to leave out."),
        fields: z
          .strictObject({ add: metricLabels.default({}) })
          .prefault({})
          .describe("Additional labels of request metrics."),
      })
      .prefault({})
      .describe("Metrics."),
    tracing: formerTracing.optional(),
    histograms: z.literal("classic").default("classic").describe("Histograms of durations have fixed buckets."),
    backend: z
      .strictObject({
        connectTimeout: duration
          .prefault("10s")
          .describe(
            "Timeout of connecting to an endpoint. While another endpoint of the backend can be tried, a request waits for at most 1s.",
          ),
        poolIdleTimeout: duration.prefault("90s").describe("Idle time after which a pooled connection is closed."),
        poolMaxSize: z.int().min(0).optional().describe("Idle connections kept per target. Default: all."),
        keepalives: keepalives.prefault({}).describe("TCP keepalive probes of connections to backends."),
        unixFolder: z
          .string()
          .startsWith("/", { message: "write an absolute path" })
          .optional()
          .describe(
            "Folder that must contain all Unix sockets that a controller names as backends. Default: none, so such backends cannot be reached.",
          ),
      })
      .prefault({})
      .describe("Connections to backends."),
    overload: z
      .strictObject({
        maxEventLoopLag: duration
          .prefault("2s")
          .describe(
            "How late the event loop of a worker may be. If it is later twice in a row, the worker turns a growing share of new requests away until the lag has halved. 0s: off.",
          ),
        heapShare: z
          .number()
          .min(0)
          .max(1)
          .default(0.85)
          .describe(
            "Share of its heap limit that a worker may fill with live objects; above it, the worker turns new requests and connections away. 0: off.",
          ),
        memoryShare: z
          .number()
          .min(0)
          .max(1)
          .default(0.85)
          .describe(
            "Share of the memory limit that may be in use; above it, all workers turn new requests and connections away. Counts what the system counts for the container, or with `memoryLimit` for the process, but neither cached files nor freed memory that has not been returned to the system. 0: off.",
          ),
        memoryLimit: size({ min: 32 * 1024 * 1024 })
          .optional()
          .describe(
            "Bytes that the process may use. Default: the limit of its container, else the memory of the machine.",
          ),
      })
      .prefault({})
      .describe(
        "When new work is turned away, so that work in progress can be finished: requests get 503 with `Retry-After`, connections are closed. The admin, stats and readiness servers keep working.",
      ),
    expressions: z
      .strictObject({
        perRequest: duration
          .refine((time) => time > 0, { message: "must be more than 0s, otherwise no expression could run" })
          .prefault("1ms")
          .describe(
            "Processor time that all expressions for one request may use, measured in steps of about a nanosecond; telemetry may use as much again. Expressions beyond it fail.",
          ),
        routeShare: z
          .number()
          .min(0)
          .max(1)
          .default(0.1)
          .describe(
            "Share of a worker's time that the expressions of one route may use while the worker is busy and other routes have traffic; all routes of a namespace together may use three times as much. Requests beyond it get 503 with `Retry-After`. 0: off.",
          ),
      })
      .prefault({})
      .describe("Limits of the processor time of [expressions](expressions.md)."),
    recorder: z
      .strictObject({
        off: z.boolean().default(false).describe("Records nothing."),
        recent: recordBytes
          .prefault("4MiB")
          .describe(
            "Bytes per worker for the latest requests, 256 bytes each: 4 MiB are 1.6 s at 10,000 requests a second.",
          ),
        kept: recordBytes
          .prefault("2MiB")
          .describe(
            "Bytes per worker for requests that failed, were rejected or were slow for their route, 256 bytes each. A full one is shared fairly by all routes.",
          ),
        samples: z
          .union([z.literal(0), recordBytes])
          .prefault("1MiB")
          .describe(
            "Bytes per worker, rounded down to a power of two, for samples: heads of requests, with secrets as digests, by which `tgctl impact` judges a change of the configuration. 0: takes none.",
          ),
        clientAddress: z.boolean().default(false).describe("Records the addresses of clients too, also in samples."),
      })
      .prefault({})
      .describe(
        "The flight recorder: the latest requests, and earlier ones that failed (`tgctl recent`). A record has numbers, names of the configuration, id, host and path of the request; no query, field or body. Memory is taken as it is used.",
      ),
    reload: z
      .strictObject({
        impact: z
          .strictObject({
            maxRefused: percentage.describe(
              "Keeps the old configuration if the new one would refuse more than this share of the sampled requests, `1%`, that the old one lets pass. A configuration can raise its own limit; one without a limit has that of the old one.",
            ),
          })
          .optional()
          .describe(
            "Judges changes of the file by [sampled requests](#changes-that-would-refuse-requests) before they take effect.",
          ),
      })
      .prefault({})
      .describe("What a new version of the file must fulfil. Unlike the rest of `config` it is reloaded."),
    customFunctions: z
      .string()
      .default("")
      .describe(
        "Functions that all expressions can call: `name(a, rest...) { CEL }` and `this.name(a) { CEL }`, one after another. " +
          "Unlike the rest of `config` they are reloaded.",
      ),
    locality: locality
      .optional()
      .describe(
        "Where this gateway runs, for the choice of near endpoints. The environment variable `LOCALITY` (`region/zone/subzone`) takes precedence.",
      ),
    clusterId: z.string().optional().describe("Cluster of this gateway, for `routingPreferences` of services."),
    network: z.string().optional().describe("Network of this gateway, for `routingPreferences` of services."),
    xdsAddress: z
      .string()
      .optional()
      .describe(
        "Address of the controller, `http://HOST:PORT` or `https://HOST:PORT`. With it, this file has only settings: binds, routes and all else come from the controller.",
      ),
    xdsRootCa: z
      .string()
      .optional()
      .describe(
        "File with the certificate of the controller's CA, read for each connection. Default: the CAs of the system and those of Node.js.",
      ),
    xdsAuthToken: z
      .string()
      .optional()
      .describe(
        "File with the ServiceAccount token for the controller, read for each connection. Default: `/var/run/secrets/xds-tokens/xds-token`, if it exists.",
      ),
    namespace: z.string().optional().describe("Namespace of the Gateway whose configuration the controller sends."),
    gateway: z.string().optional().describe("Name of the Gateway whose configuration the controller sends."),
    sensitiveHeaders: z
      .array(z.string())
      .default([])
      .describe(
        "Additional headers whose values are redacted in traces, dumps, the access log, spans and metrics. Always redacted: `authorization`, `cookie` and the like, and every header whose name contains a word such as `token`, `secret`, `password`, `session` or `api-key`.",
      ),
  })
  .describe("Settings of the process, read once at startup.");

export type SettingsInput = z.output<typeof settings>;

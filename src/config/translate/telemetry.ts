import type { AccessLog, Collector, Tracing } from "../../ir/ir.ts";
import type { FrontendInput } from "../schema/frontend.ts";
import type { SettingsInput } from "../schema/settings.ts";
import type { AccessLogExportInput, TracingInput } from "../schema/telemetry.ts";
import type { RawPolicies } from "./attached-policies.ts";
import type { Context, Path } from "./context.ts";
import { translateCallPolicies, withoutUndefined } from "./policies.ts";

/** Milliseconds for one export when nothing else is said (OpenTelemetry, "OTLP Exporter Configuration"). */
const TIMEOUT = 10_000;
const MOVED = "has moved to frontendPolicies.accessLog; tracegate migrate -f FILE moves it there";

/**
 * `frontendPolicies.accessLog` as a runtime type, completed by what `config.logging` says in its former place. Problems are
 * reported; undefined = nothing is configured.
 */
export function translateAccessLog(
  { accessLog, logging }: FrontendInput,
  former: SettingsInput["logging"],
  { calledTargets, report }: Pick<Context, "calledTargets" | "report">,
): AccessLog | undefined {
  for (const field of ["filter", "fields"] as const)
    if (former[field] !== undefined) report(["config", "logging"], { message: MOVED, warning: true }, field);
  const input = accessLog ?? logging ?? {};
  const { filter = former.filter, add = former.fields?.add, remove = former.fields?.remove, otlp } = input;
  if (otlp === undefined && filter === undefined && add === undefined && remove === undefined) return undefined;
  const own = withoutUndefined({ filter, add, remove }) as AccessLog;
  if (otlp === undefined) return own;
  const path = ["frontendPolicies", accessLog === undefined ? "logging" : "accessLog", "otlp"];
  const fields = withoutUndefined({ filter: otlp.filter ?? filter, ...(otlp.fields ?? { add, remove }) }) as AccessLog;
  return { ...own, otlp: { collector: collectorOf(otlp, {}, path, calledTargets), ...fields } };
}

/** `frontendPolicies.tracing` as a runtime type; what is wrong with it is reported at `path`. */
export function translateTracing(
  input: TracingInput,
  path: Path,
  { calledTargets }: Pick<Context, "calledTargets">,
): Tracing {
  const { attributes, resources, remove, filter, clientSampling, randomSampling } = input;
  return {
    collector: collectorOf(input, resources, path, calledTargets),
    attributes,
    remove,
    ...(filter !== undefined && { filter }),
    ...(clientSampling !== undefined && { clientSampling }),
    ...(randomSampling !== undefined && { randomSampling }),
  };
}

function collectorOf(
  { host, service, backend, policies: own, timeout, protocol, path: exportPath }: TracingInput | AccessLogExportInput,
  resources: Collector["resources"],
  path: Path,
  calledTargets: Context["calledTargets"],
): Collector {
  const named = { host, service, backend };
  const target = calledTargets.find(named, path);
  const set = own && (withoutUndefined(own) as RawPolicies);
  const policies = calledTargets.callPolicies(named, set, protocol === "grpc", path, translateCallPolicies);
  return {
    target,
    ...(policies !== undefined && { policies }),
    protocol,
    path: exportPath,
    timeout: timeout ?? policies?.http?.requestTimeout ?? TIMEOUT,
    resources,
  };
}

import type { AccessLog, Collector, Tracing } from "../../ir/ir.ts";
import type { FrontendInput } from "../schema/frontend.ts";
import type { AccessLogExportInput, TracingInput } from "../schema/telemetry.ts";
import type { RawPolicies } from "./attached-policies.ts";
import type { Context, Path } from "./context.ts";
import { translateCallPolicies, withoutUndefined } from "./policies.ts";

/** Milliseconds for one export when nothing else is said (OpenTelemetry, "OTLP Exporter Configuration"). */
const TIMEOUT = 10_000;

/** `frontendPolicies.accessLog` as a runtime type; what is wrong with it is reported. undefined = there is none. */
export function translateAccessLog(
  { accessLog, logging }: FrontendInput,
  { calledTargets }: Pick<Context, "calledTargets">,
): AccessLog | undefined {
  const input = accessLog ?? logging;
  if (input === undefined) return undefined;
  const { filter, add, remove, otlp } = input;
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

import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { type CelEnvironment, toJson } from "../../cel/index.ts";
import type { Attributes } from "./entries.ts";

type Env = Readonly<Record<string, string | undefined>>;

/** Unique for each run of the process, as the semantic conventions recommend for `service.instance.id`. */
const INSTANCE = randomUUID();

/**
 * The OpenTelemetry resource of this process (docs/telemetry.md#collectors). Precedence: configuration, `OTEL_SERVICE_NAME`,
 * `OTEL_RESOURCE_ATTRIBUTES`, then what is known about the process. `configured`: name → CEL over `env`; expressions see
 * `snapshotEnv`, the environment without secrets. One that fails is omitted. Throws CelError for one that does not compile.
 */
export function resourceAttributes(
  configured: Readonly<Record<string, string>>,
  env: Env,
  snapshotEnv: Readonly<Record<string, string>>,
  version: string,
  cel: CelEnvironment,
): Attributes {
  const attributes: Record<string, unknown> = {
    "service.name": set(env.GATEWAY_CLASS) ?? set(env.GATEWAY) ?? "tracegate",
    "service.namespace": set(env.NAMESPACE),
    "service.version": version,
    "service.instance.id": INSTANCE,
    "host.name": hostname(),
    "k8s.pod.name": set(env.POD_NAME),
    "k8s.namespace.name": set(env.NAMESPACE),
    "k8s.node.name": set(env.NODE_NAME),
    "k8s.pod.ip": set(env.INSTANCE_IP),
    ...parseAttributes(env.OTEL_RESOURCE_ATTRIBUTES ?? ""),
  };
  const name = set(env.OTEL_SERVICE_NAME);
  if (name !== undefined) attributes["service.name"] = name;
  for (const [key, text] of Object.entries(configured)) {
    const expression = cel.compileExpression(text, "network");
    try {
      attributes[key] = toJson(expression.evaluate({ env: snapshotEnv }));
    } catch {
      // Omitted, like an attribute of a span whose expression fails.
    }
  }
  return attributes;
}

/** Parses percent-encoded `key=value` pairs, separated by commas (OpenTelemetry, "Specifying resource information"). */
function parseAttributes(text: string): Record<string, string> {
  const attributes: Record<string, string> = {};
  for (const pair of text.split(",")) {
    const [, name, value] = /^\s*([^=\s]+)\s*=\s*(.*?)\s*$/.exec(pair) ?? [];
    if (name === undefined || value === undefined) continue;
    try {
      attributes[decodeURIComponent(name)] = decodeURIComponent(value);
    } catch {
      // Invalid percent-encoding: the pair is ignored.
    }
  }
  return attributes;
}

function set(value: string | undefined): string | undefined {
  return value === "" ? undefined : value;
}

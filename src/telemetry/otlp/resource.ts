import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { type CelEnvironment, toJson } from "../../cel/index.ts";
import type { Attributes } from "./entries.ts";

type Env = Readonly<Record<string, string | undefined>>;

/** Of this process, for as long as it runs. */
const INSTANCE = randomUUID();

/**
 * What all telemetry of this process is from (reference 3.30): what the configuration says, then `OTEL_SERVICE_NAME`, then
 * `OTEL_RESOURCE_ATTRIBUTES`, then what is known of the process. `configured`: name → CEL over `env`, with `shownEnv` as
 * snapshots of requests show it; one that fails is left out. Throws CelError for one that cannot be used.
 */
export function resourceAttributes(
  configured: Readonly<Record<string, string>>,
  env: Env,
  shownEnv: Readonly<Record<string, string>>,
  version: string,
  cel: CelEnvironment,
): Attributes {
  const attributes: Record<string, unknown> = {
    "service.name": set(env.GATEWAY) ?? "tracegate",
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
      attributes[key] = toJson(expression.evaluate({ env: shownEnv }));
    } catch {
      // As an attribute of a span: what cannot be had is left out.
    }
  }
  return attributes;
}

/** `key=value` pairs with commas between, percent-encoded (OpenTelemetry, "Specifying resource information"). */
function parseAttributes(text: string): Record<string, string> {
  const attributes: Record<string, string> = {};
  for (const pair of text.split(",")) {
    const [, name, value] = /^\s*([^=\s]+)\s*=\s*(.*?)\s*$/.exec(pair) ?? [];
    if (name === undefined || value === undefined) continue;
    try {
      attributes[decodeURIComponent(name)] = decodeURIComponent(value);
    } catch {
      // A pair that is not encoded as it should be is ignored.
    }
  }
  return attributes;
}

function set(value: string | undefined): string | undefined {
  return value === "" ? undefined : value;
}

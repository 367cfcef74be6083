import type { CelEnvironment } from "../../cel/index.ts";
import { parsingWith } from "../../policies/schema/cel.ts";
import { type FormerTracingInput, type TracingInput, tracing } from "../../translation/schema/telemetry.ts";
import type { ConfigSet } from "../parse/config-set.ts";

type Env = Readonly<Record<string, string | undefined>>;

const PATH = ["config", "tracing"];
const TRACES = "/v1/traces";

/** A setting and where it comes from. */
interface Found {
  readonly text: string;
  /** Name of the environment variable; undefined = the configuration. */
  readonly variable: string | undefined;
}

/** Where exports go. */
interface CollectorAddress {
  /** `host:port` or `unix:/path`. */
  readonly host: string;
  readonly secure: boolean;
  /** `` when the URL has none. */
  readonly path: string;
}

/**
 * `config.tracing` and the environment variables of collectors (docs/telemetry.md#environment), which win, in the form of
 * `frontendPolicies.tracing`; undefined when neither names a collector. Problems go to the document.
 */
export function formerTracing(
  input: FormerTracingInput | undefined,
  env: Env,
  document: ConfigSet,
  cel: CelEnvironment,
): TracingInput | undefined {
  if (input !== undefined)
    document.report(PATH, {
      message: "has moved to frontendPolicies.tracing; tracegate migrate -f FILE moves it there",
      warning: true,
    });
  const endpoint = find(env, ["OTLP_ENDPOINT", ...variables("ENDPOINT")], input?.otlpEndpoint);
  if (endpoint === undefined) {
    if (input !== undefined) document.report(PATH, { message: "names no collector", expected: "otlpEndpoint" });
    return undefined;
  }
  const place = parseEndpoint(endpoint.text);
  if (place === undefined) {
    report(document, endpoint, "otlpEndpoint", "http://host:port, https://host:port or host:port");
    return undefined;
  }
  const protocol = protocolOf(input, env, document);
  const headers = headersOf(input, env, document);
  return tracing.parse(
    {
      host: place.host,
      protocol,
      path: input?.path ?? exportPath(place, endpoint),
      policies: {
        ...(place.secure && { backendTLS: {} }),
        ...(Object.keys(headers).length > 0 && { requestHeaderModifier: { set: headers } }),
      },
      attributes: input?.fields?.add,
      remove: input?.fields?.remove,
      clientSampling: input?.clientSampling,
      randomSampling: input?.randomSampling,
    },
    parsingWith(cel),
  );
}

function variables(name: string): string[] {
  return [`OTEL_EXPORTER_OTLP_TRACES_${name}`, `OTEL_EXPORTER_OTLP_${name}`];
}

function find(env: Env, names: readonly string[], configured: string | undefined): Found | undefined {
  for (const variable of names) {
    const text = env[variable];
    if (text !== undefined && text !== "") return { text, variable };
  }
  return configured === undefined ? undefined : { text: configured, variable: undefined };
}

/** A URL without port has that of its scheme. */
function parseEndpoint(text: string): CollectorAddress | undefined {
  if (!text.includes("://")) return /^\S+:\d+$/.test(text) ? { host: text, secure: false, path: "" } : undefined;
  if (!URL.canParse(text)) return undefined;
  const { protocol, hostname, port, pathname } = new URL(text);
  if (protocol !== "http:" && protocol !== "https:") return undefined;
  const secure = protocol === "https:";
  return { host: `${hostname}:${port || (secure ? 443 : 80)}`, secure, path: pathname.replace(/\/$/, "") };
}

/** The variable for all signals names the place under which those of the signals are. */
function exportPath({ path }: CollectorAddress, { variable }: Found): string {
  if (variable === "OTEL_EXPORTER_OTLP_ENDPOINT") return path + TRACES;
  return path === "" ? TRACES : path;
}

function protocolOf(input: FormerTracingInput | undefined, env: Env, document: ConfigSet): "grpc" | "http" {
  const found = find(env, ["OTLP_PROTOCOL", ...variables("PROTOCOL")], input?.otlpProtocol);
  switch (found?.text) {
    case undefined:
    case "grpc":
      return "grpc";
    case "http":
    case "http/protobuf":
      return "http";
    default:
      report(document, found as Found, "otlpProtocol", "grpc or http/protobuf; http/json is not available");
      return "grpc";
  }
}

/** `name=value` pairs with commas between, values percent-encoded (W3C Baggage, as OpenTelemetry has it). */
function headersOf(
  input: FormerTracingInput | undefined,
  env: Env,
  document: ConfigSet,
): Readonly<Record<string, string>> {
  const found = find(env, ["OTLP_HEADERS", ...variables("HEADERS")], undefined);
  if (found === undefined) return input?.headers ?? {};
  const headers: Record<string, string> = {};
  try {
    for (const pair of found.text.split(",")) {
      const [, name, value] = /^\s*([^=\s]+)\s*=\s*(.*?)\s*$/.exec(pair) ?? [];
      if (name === undefined || value === undefined) throw new Error("no pair");
      headers[name.toLowerCase()] = decodeURIComponent(value);
    }
  } catch {
    report(document, found, "headers", "name=value pairs with commas between, such as api-key=secret");
  }
  return headers;
}

/** Values may be secrets: they are not shown. */
function report(document: ConfigSet, { variable }: Found, field: string, expected: string): void {
  if (variable === undefined) document.report([...PATH, field], { message: "is not valid", expected });
  else document.reportElsewhere({ message: `environment variable ${variable} is not valid`, expected });
}

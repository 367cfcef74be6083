import { REDACTED } from "../base/redaction.ts";
import type { SampledField, SampledRequest } from "../recorder/sample.ts";

/** A sampled request as a client would send it, made once for all configurations that decide about it. */
export interface SampledHead {
  readonly sample: SampledRequest;
  /** The head in HTTP/1.x, latin1; undefined for HTTP/2. */
  readonly bytes: Buffer | undefined;
  /** The field section of HTTP/2, names and values alternate; empty for HTTP/1.x. */
  readonly fields: readonly string[];
  /** The digests of secret fields, by their lower-case names. */
  readonly digests: ReadonlyMap<string, readonly string[]>;
  /** The lower-case names of fields with a secret in their value, such as one in a URL. */
  readonly partlySecret: readonly string[];
  /** Where the target has secrets. */
  readonly secretsIn: { readonly path: boolean; readonly query: boolean };
}

const NO_DIGESTS: SampledHead["digests"] = new Map();
const NO_FIELDS: readonly string[] = [];
/** As parsers take it, and as queries are decoded. */
const IN_TARGET = encodeURIComponent(REDACTED);

/** Secret values are `<redacted>`, which the rehearsal takes for unknown ones. */
export function headOf(sample: SampledRequest): SampledHead {
  const target = sample.target.replaceAll(REDACTED, IN_TARGET);
  const fields = sample.headers.flatMap((field): [string, string][] => {
    const name = field.name.toLowerCase();
    if (name === "content-length" || name === "host") return [];
    return [[name, isSecret(field) ? REDACTED : field.value]];
  });
  if (typeof sample.contentLength === "number") fields.push(["content-length", String(sample.contentLength)]);
  const [path = "", ...query] = sample.target.split("?");
  const known = {
    sample,
    digests: digestsOf(sample),
    partlySecret: sample.headers.flatMap((field) =>
      !isSecret(field) && field.value.includes(REDACTED) ? field.name.toLowerCase() : [],
    ),
    secretsIn: { path: path.includes(REDACTED), query: query.join("?").includes(REDACTED) },
  };
  if (sample.version === "2") return { ...known, bytes: undefined, fields: sectionOf(sample, target, fields) };
  if (sample.contentLength === "unknown") fields.push(["transfer-encoding", "chunked"]);
  if (sample.upgrade !== undefined) fields.push(["connection", "upgrade"], ["upgrade", sample.upgrade]);
  const lines = fields.map(([name, value]) => `${name}: ${value}\r\n`).join("");
  // Requests of HTTP/1.0 may lack Host.
  const host = sample.authority === "" ? "" : `host: ${sample.authority}\r\n`;
  const text = `${sample.method} ${target} HTTP/${sample.version}\r\n${host}${lines}\r\n`;
  return { ...known, bytes: Buffer.from(text, "latin1"), fields: NO_FIELDS };
}

function sectionOf(
  { method, scheme, authority, upgrade }: SampledRequest,
  target: string,
  fields: readonly (readonly [string, string])[],
): string[] {
  const path = method === "CONNECT" ? [] : [":scheme", scheme, ":path", target];
  // Gateways read an extended CONNECT as the GET of an upgrade (RFC 8441 5), and samples have that.
  const tunnel = upgrade === undefined ? [":method", method] : [":method", "CONNECT", ":protocol", upgrade];
  return [...tunnel, ":authority", authority, ...path, ...fields.flat()];
}

function digestsOf({ headers }: SampledRequest): SampledHead["digests"] {
  if (!headers.some(isSecret)) return NO_DIGESTS;
  const found = new Map<string, string[]>();
  for (const field of headers) {
    if (!isSecret(field)) continue;
    const name = field.name.toLowerCase();
    found.set(name, [...(found.get(name) ?? []), field.digest]);
  }
  return found;
}

function isSecret(field: SampledField): field is Extract<SampledField, { readonly digest: string }> {
  return "digest" in field;
}

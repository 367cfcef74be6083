import { REDACTED } from "../base/redaction.ts";
import type { SampledRequest } from "../recorder/sample.ts";

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

/** As parsers take it, and as queries are decoded. */
const IN_TARGET = encodeURIComponent(REDACTED);

/** Secret values are `<redacted>`, which the rehearsal takes for unknown ones. Called for each of thousands of samples, so it makes few lists. */
export function headOf(sample: SampledRequest): SampledHead {
  const isHttp2 = sample.version === "2";
  const hasSecret = sample.target.includes(REDACTED);
  const target = hasSecret ? sample.target.replaceAll(REDACTED, IN_TARGET) : sample.target;
  const fields = isHttp2 ? pseudoFields(sample, target) : [];
  const digests = new Map<string, string[]>();
  const partlySecret: string[] = [];
  for (const field of sample.headers) {
    const name = field.name.toLowerCase();
    const isSecret = "digest" in field;
    const value = isSecret ? REDACTED : field.value;
    if (isSecret) addTo(digests, name, field.digest);
    else if (value.includes(REDACTED)) partlySecret.push(name);
    if (name !== "content-length" && name !== "host") fields.push(name, value);
  }
  if (typeof sample.contentLength === "number") fields.push("content-length", String(sample.contentLength));
  const [path = ""] = hasSecret ? sample.target.split("?", 1) : [];
  const inPath = path.includes(REDACTED);
  const secretsIn = { path: inPath, query: sample.target.includes(REDACTED, path.length) };
  const known = { sample, digests, partlySecret, secretsIn };
  return isHttp2
    ? { ...known, bytes: undefined, fields }
    : { ...known, bytes: Buffer.from(textOf(sample, target, fields), "latin1"), fields: NO_FIELDS };
}

const NO_FIELDS: readonly string[] = [];

function addTo(lists: Map<string, string[]>, name: string, value: string): void {
  const list = lists.get(name);
  if (list === undefined) lists.set(name, [value]);
  else list.push(value);
}

function pseudoFields({ method, scheme, authority, upgrade }: SampledRequest, target: string): string[] {
  const path = method === "CONNECT" ? [] : [":scheme", scheme, ":path", target];
  // Gateways read an extended CONNECT as the GET of an upgrade (RFC 8441 5), and samples have that.
  const tunnel = upgrade === undefined ? [":method", method] : [":method", "CONNECT", ":protocol", upgrade];
  return [...tunnel, ":authority", authority, ...path];
}

/** The head as HTTP/1.x has it. */
function textOf(
  { method, version, authority, contentLength, upgrade }: SampledRequest,
  target: string,
  fields: readonly string[],
): string {
  // Instead of a path, CONNECT names the other end of the tunnel (RFC 9112 3.2.3).
  let text = `${method} ${method === "CONNECT" ? authority : target} HTTP/${version}\r\n`;
  // Requests of HTTP/1.0 may lack Host.
  if (authority !== "") text += `host: ${authority}\r\n`;
  for (let i = 0; i < fields.length; i += 2) text += `${fields[i]}: ${fields[i + 1]}\r\n`;
  if (contentLength === "unknown") text += "transfer-encoding: chunked\r\n";
  if (upgrade !== undefined) text += `connection: upgrade\r\nupgrade: ${upgrade}\r\n`;
  return `${text}\r\n`;
}

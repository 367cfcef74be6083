import { REDACTED } from "../base/redaction.ts";
import type { SampledField, SampledRequest } from "../recorder/sample.ts";
import type { WrittenRequest } from "../rehearsal/facts.ts";

/** A sample, named by a change. */
export interface Example {
  /** ISO 8601. */
  readonly time: string;
  readonly method: string;
  readonly authority: string;
  /** Secret values are redacted. */
  readonly target: string;
  /**
   * What a question to `/explain` has as its `request`: secret values are redacted, and there is no body. Absent if it is longer than
   * `MAX_LENGTH`, or no such question can be written: of tunnels.
   */
  readonly request?: ExampleRequest;
}

type ExampleRequest = Omit<WrittenRequest, "body">;

/** Characters of URL and fields of the request of an example: thousands of examples may be kept. */
const MAX_LENGTH = 4096;

/** A sample as an example. `port`: of the bind at which it arrived; undefined if that is not known. */
export function exampleOf(sample: SampledRequest, port: number | undefined): Example {
  const { time, method, authority, target } = sample;
  const request = requestOf(sample, port);
  return { time, method, authority, target, ...(request !== undefined && { request }) };
}

function requestOf(sample: SampledRequest, port: number | undefined): ExampleRequest | undefined {
  const { method, authority, target, scheme, version, contentLength, upgrade, source, serverName } = sample;
  const [named] = /^(?:\[[^\]]*\]|[^:]*)/.exec(authority) ?? [];
  const host = serverName || named;
  if (!host || !target.startsWith("/") || upgrade !== undefined) return undefined;
  const at = port ? `${host}:${port}` : host;
  const url = `${scheme}://${at}${target}`;
  const headers = [
    ["host", authority] as const,
    ...sample.headers.filter(({ name }) => !MADE.has(name.toLowerCase())).map(written),
    ...(contentLength === undefined ? [] : [lengthField(contentLength)]),
  ];
  const length = headers.reduce((all, [name, value]) => all + name.length + value.length, url.length);
  if (length > MAX_LENGTH) return undefined;
  return {
    url,
    method,
    headers,
    ...(source !== undefined && { source: source.address }),
    version: version === "2" ? "2" : "1.1",
  };
}

/** Fields that follow from the rest of a sample. */
const MADE: ReadonlySet<string> = new Set(["host", "content-length"]);

function written(field: SampledField): readonly [name: string, value: string] {
  return [field.name, "digest" in field ? REDACTED : Buffer.from(field.value, "latin1").toString()];
}

function lengthField(length: number | "unknown"): readonly [name: string, value: string] {
  return length === "unknown" ? ["transfer-encoding", "chunked"] : ["content-length", String(length)];
}

/** Sample files are JSON Lines: a header, then samples. */
import { packageVersion } from "../base/build-info.ts";
import { fieldsOf, isObject, jsonOf } from "../base/fields.ts";
import { REDACTED } from "../base/redaction.ts";
import type { SampledRequest } from "./sample.ts";

/** The format that this version writes, and the only one that it reads. */
const SAMPLE_FILE_FORMAT = 1;

/** The first line of a sample file. */
export interface SampleFileHeader {
  /** The format of the file; no sample has a field of this name. */
  readonly sampleFile: number;
  /** The version of tracegate that wrote the file. */
  readonly tracegate: string;
  /** How many samples follow: a file with fewer was cut short. */
  readonly samples: number;
  /** Number of the configuration that was in effect when the file was written. */
  readonly generation: number;
  readonly configuration: SampledConfiguration;
  /** What samples have in place of secret values. */
  readonly redacted: typeof IN_PLACE;
}

/** What tells the configuration that was in effect from others. */
export interface SampledConfiguration {
  /** Of all but its secrets. */
  readonly digest: string;
  /** Names of its HTTP routes, `<namespace>/<name>`. */
  readonly routes: readonly string[];
}

const IN_PLACE = {
  headers: "digests by a key that only the gateway has",
  parameters: REDACTED,
} as const;

export function sampleFileText(
  samples: readonly SampledRequest[],
  { generation, configuration }: Pick<SampleFileHeader, "configuration" | "generation">,
): string {
  const header: SampleFileHeader = {
    sampleFile: SAMPLE_FILE_FORMAT,
    tracegate: packageVersion(),
    samples: samples.length,
    generation,
    configuration,
    redacted: IN_PLACE,
  };
  return [header, ...samples].map((line) => `${JSON.stringify(line)}\n`).join("");
}

/** A file that is not one of samples; the message says which line is wrong, and why. */
export class BadSampleFile extends Error {}

/** What a file of samples says. */
export interface SampleFile {
  readonly configuration: SampledConfiguration;
  readonly samples: readonly SampledRequest[];
}

/** Throws BadSampleFile. */
export function readSampleFile(text: string): SampleFile {
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  const [first = "", ...others] = lines;
  const { sampleFile, samples, configuration } = fieldsOf(jsonOf(first));
  if (typeof sampleFile !== "number")
    throw new BadSampleFile(
      "it does not begin with the header of a file of samples; take one by GET /samples of the admin server",
    );
  if (sampleFile !== SAMPLE_FILE_FORMAT)
    throw new BadSampleFile(`it has format ${sampleFile}, and this version reads ${SAMPLE_FILE_FORMAT}; take it again`);
  if (samples !== others.length)
    throw new BadSampleFile(`it has ${others.length} samples and should have ${samples}: it was cut short`);
  if (!isConfiguration(configuration))
    throw new BadSampleFile("it does not say with which configuration it was taken; take it again");
  const read = others.map((line, i) => {
    const sample = jsonOf(line);
    const wrong = wrongIn(sample);
    if (wrong !== undefined) throw new BadSampleFile(`line ${i + 2} is not a sample: ${wrong}`);
    return sample as SampledRequest;
  });
  return { configuration, samples: read };
}

function isConfiguration(value: unknown): value is SampledConfiguration {
  const { digest, routes } = fieldsOf(value);
  return isText(digest) && Array.isArray(routes) && routes.every(isText);
}

const isText = (value: unknown): boolean => typeof value === "string";

type Needed = Exclude<keyof SampledRequest, "contentLength" | "serverName" | "source" | "upgrade">;
const NEEDED: Readonly<Record<Needed, (value: unknown) => boolean>> = {
  time: (value) => typeof value === "string" && !Number.isNaN(Date.parse(value)),
  weight: (value) => typeof value === "number" && value > 0,
  bind: isText,
  scheme: (value) => value === "http" || value === "https",
  version: (value) => value === "1.0" || value === "1.1" || value === "2",
  method: isText,
  authority: isText,
  target: isText,
  headers: (value) => Array.isArray(value) && value.every(isField),
};

/** The name of a field that a sample cannot have like this; undefined: it is a sample. */
function wrongIn(value: unknown): string | undefined {
  if (!isObject(value)) return "it is no object";
  for (const [name, fits] of Object.entries(NEEDED)) if (!fits(value[name])) return name;
  const { contentLength = 0, serverName = "", source = { address: "", port: 0 }, upgrade = "" } = value;
  if (typeof contentLength !== "number" && contentLength !== "unknown") return "contentLength";
  if (typeof upgrade !== "string") return "upgrade";
  if (typeof serverName !== "string") return "serverName";
  return isObject(source) && isText(source.address) && typeof source.port === "number" ? undefined : "source";
}

function isField(value: unknown): boolean {
  const field = fieldsOf(value);
  return isText(field.name) && (isText(field.value) || isText(field.digest));
}

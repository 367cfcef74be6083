/** Files of samples are JSON Lines: a header, then the samples, the oldest first. `GET /requests/samples` of a gateway writes them. */
import { packageVersion } from "../base/build-info.ts";
import { type Fields, fieldsOf, isObject, jsonOf } from "../base/fields.ts";
import type { SampledRequest } from "../recorder/sample.ts";

/** The format that this version writes, and the only one that it reads: it might misunderstand a later one. */
const SAMPLE_FILE_FORMAT = 1;

/** The first line. */
interface SampleFileHeader {
  /** The format of the file; no sample has a field of this name. */
  readonly sampleFile: number;
  /** The version of tracegate that wrote the file. */
  readonly tracegate: string;
  /** How many samples follow: a file with fewer was cut short. */
  readonly samples: number;
  /** What samples have in place of secret values. */
  readonly redacted: {
    readonly headers: "digests of a key that only the gateway has";
    readonly parameters: "<redacted>";
  };
}

/** A file that is not one of samples; the message says which line is wrong, and why. */
export class BadSampleFile extends Error {}

/** The text of a file. */
export function sampleFileText(samples: readonly SampledRequest[]): string {
  const header: SampleFileHeader = {
    sampleFile: SAMPLE_FILE_FORMAT,
    tracegate: packageVersion(),
    samples: samples.length,
    redacted: { headers: "digests of a key that only the gateway has", parameters: "<redacted>" },
  };
  return [header, ...samples].map((line) => `${JSON.stringify(line)}\n`).join("");
}

/** The samples of a file. Throws BadSampleFile. */
export function readSampleFile(text: string): readonly SampledRequest[] {
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  const [first = "", ...others] = lines;
  const { sampleFile, samples } = fieldsOf(jsonOf(first));
  if (typeof sampleFile !== "number")
    throw new BadSampleFile(
      "it does not begin with the header of a file of samples; take one by GET /requests/samples",
    );
  if (sampleFile !== SAMPLE_FILE_FORMAT)
    throw new BadSampleFile(`it has format ${sampleFile}, and this version reads ${SAMPLE_FILE_FORMAT}; take it again`);
  if (samples !== others.length)
    throw new BadSampleFile(`it has ${others.length} samples and should have ${samples}: it was cut short`);
  return others.map((line, i) => {
    const sample = jsonOf(line);
    const wrong = wrongIn(sample);
    if (wrong !== undefined) throw new BadSampleFile(`line ${i + 2} is not a sample: ${wrong}`);
    return sample as SampledRequest;
  });
}

const isText = (value: unknown): boolean => typeof value === "string";

type Needed = Exclude<keyof SampledRequest, "contentLength" | "serverName" | "source">;
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
  const { contentLength = 0, serverName = "", source = { address: "", port: 0 } } = value;
  if (typeof contentLength !== "number") return "contentLength";
  if (typeof serverName !== "string") return "serverName";
  return isObject(source) && isText(source.address) && typeof source.port === "number" ? undefined : "source";
}

function isField(value: unknown): boolean {
  const field: Fields = fieldsOf(value);
  return isText(field.name) && (isText(field.value) || isText(field.digest));
}

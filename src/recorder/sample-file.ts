/** Sample files are JSON Lines: a header, then samples. */
import { packageVersion } from "../base/build-info.ts";
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
}

export function sampleFileText(samples: readonly SampledRequest[], generation: number): string {
  const header: SampleFileHeader = {
    sampleFile: SAMPLE_FILE_FORMAT,
    tracegate: packageVersion(),
    samples: samples.length,
    generation,
  };
  return [header, ...samples].map((line) => `${JSON.stringify(line)}\n`).join("");
}

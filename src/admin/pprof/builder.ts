import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { type FunctionInput, type LocationInput, Profile, type SampleInput, StringTable } from "pprof-format";
import { appRoot } from "../../base/app-root.ts";

const ROOT = pathToFileURL(appRoot).href;

/** One stack frame as V8 reports it; `lineNumber` is the line of the function, counted from 0. */
interface CallFrame {
  readonly functionName: string;
  readonly url: string;
  readonly lineNumber: number;
  readonly columnNumber: number;
}

/** What a value counts, such as `cpu` in `nanoseconds`. */
interface ValueKind {
  readonly type: string;
  readonly unit: string;
}

interface ProfileShape {
  readonly kinds: readonly ValueKind[];
  /** The kind that viewers show first. */
  readonly main: ValueKind;
  readonly period: { readonly kind: ValueKind; readonly value: number };
  /** Milliseconds since the epoch. */
  readonly startedAt: number;
  readonly durationMs: number;
}

/** Collects stacks of several threads into one profile in the pprof format (profile.proto of google/pprof). */
export class ProfileBuilder {
  readonly #strings = new StringTable();
  readonly #functions = new Map<string, FunctionInput>();
  readonly #locations = new Map<string, LocationInput>();
  readonly #samples: SampleInput[] = [];

  /** The id of a line in a function; `line` counts from 1 and defaults to the function's own. */
  location(frame: CallFrame, line = frame.lineNumber + 1): number {
    const key = `${frame.functionName}\n${frame.url}\n${frame.lineNumber}:${frame.columnNumber}`;
    const known = this.#locations.get(`${key}@${line}`);
    if (known !== undefined) return Number(known.id);
    const id = this.#locations.size + 1;
    const functionId = this.#functionId(key, frame);
    this.#locations.set(`${key}@${line}`, { id, mappingId: 1, line: [{ functionId, line: Math.max(0, line) }] });
    return id;
  }

  /** @param stack location ids, the innermost first; @param values one per kind of the profile */
  sample(stack: readonly number[], values: readonly number[], thread: string): void {
    const label = { key: this.#strings.dedup("thread"), str: this.#strings.dedup(thread) };
    this.#samples.push({ locationId: [...stack], value: values.map(Math.round), label: [label] });
  }

  /** The profile, encoded and compressed. */
  async finish({ kinds, main, period, startedAt, durationMs }: ProfileShape): Promise<Uint8Array> {
    const kind = ({ type, unit }: ValueKind): { type: number; unit: number } => ({
      type: this.#strings.dedup(type),
      unit: this.#strings.dedup(unit),
    });
    const profile = new Profile({
      sampleType: kinds.map(kind),
      sample: this.#samples,
      // States that the profile has all names; otherwise viewers look for a binary to read them from.
      mapping: [
        {
          id: 1,
          filename: this.#strings.dedup("tracegate"),
          hasFunctions: true,
          hasFilenames: true,
          hasLineNumbers: true,
        },
      ],
      location: [...this.#locations.values()],
      function: [...this.#functions.values()],
      periodType: kind(period.kind),
      period: Math.round(period.value),
      timeNanos: BigInt(Math.round(startedAt)) * 1_000_000n,
      durationNanos: BigInt(Math.round(durationMs)) * 1_000_000n,
      defaultSampleType: this.#strings.dedup(main.type),
      stringTable: this.#strings,
    });
    return promisify(gzip)(profile.encode());
  }

  #functionId(key: string, { functionName, url, lineNumber }: CallFrame): number {
    const known = this.#functions.get(key);
    if (known !== undefined) return Number(known.id);
    const id = this.#functions.size + 1;
    const name = this.#strings.dedup(functionName === "" ? "(anonymous)" : functionName);
    const filename = this.#strings.dedup(sourceName(url));
    this.#functions.set(key, { id, name, systemName: name, filename, startLine: Math.max(0, lineNumber + 1) });
    return id;
  }
}

/** A script's name as profiles show it: `src/x.ts` for files of the package, else its URL (`node:net`, `file:///…`). */
export function sourceName(url: string): string {
  return url.startsWith(ROOT) ? decodeURIComponent(url.slice(ROOT.length)) : url;
}

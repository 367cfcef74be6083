import { BoundedCache } from "../base/bounded-cache.ts";
import type { Locate, Origin } from "../base/origin.ts";
import { formatPath, type Path } from "../base/paths.ts";
import { type ConfigSource, locating } from "../config/load.ts";
import { type Digests, InputReader } from "../config/parse/inputs.ts";

/** Characters of a file at most: it is parsed on the main thread, where so many take about 0.3 s. */
const LARGEST = 1024 * 1024;
const REMEMBERED = 10_000;
const NOWHERE = "nowhere";

/**
 * Where the parts of a configuration in effect are written, as `file:line:column`. Nothing keeps the text, so its file is read and parsed
 * again when somebody asks, once for all questions of one turn of the event loop; the results are remembered.
 */
export class WrittenPlaces {
  readonly #source: ConfigSource;
  readonly #env: Readonly<Record<string, string | undefined>>;
  readonly #files: Digests;
  readonly #known = new BoundedCache<NonNullable<Origin["place"]> | typeof NOWHERE>(REMEMBERED);
  #locate: Locate | undefined;

  /** `files`: what was read, as digests. */
  constructor(source: ConfigSource, env: Readonly<Record<string, string | undefined>>, files: Digests) {
    this.#source = source;
    this.#env = env;
    this.#files = files;
  }

  /** Undefined for a field that is not in the file, and for all fields if the file is another one by now, or too large. */
  readonly locate: Locate = (path: Path) => {
    const name = formatPath(path);
    let place = this.#known.get(name);
    if (place === undefined) {
      this.#locate ??= this.#open();
      place = this.#locate(path) ?? NOWHERE;
      this.#known.set(name, place);
    }
    return place === NOWHERE ? undefined : place;
  };

  #open(): Locate {
    setImmediate(() => {
      this.#locate = undefined;
    });
    const text = this.#text();
    if (text === undefined || text.length > LARGEST) return () => undefined;
    const source = this.#source;
    const name = source.kind === "text" ? source.name : source.path;
    return locating({ kind: "text", text, ...(name !== undefined && { name }) }, this.#env);
  }

  /** Undefined if it is not the one that was loaded. */
  #text(): string | undefined {
    if (this.#source.kind === "text") return this.#source.text;
    const { path } = this.#source;
    const reader = new InputReader();
    try {
      const text = reader.readText(path);
      return reader.inputs.files.get(path) === this.#files.get(path) ? text : undefined;
    } catch {
      return undefined;
    }
  }
}

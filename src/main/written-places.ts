import { BoundedCache } from "../base/bounded-cache.ts";
import type { Locate, Origin } from "../base/origin.ts";
import { formatPath, type Path } from "../base/paths.ts";
import { type ConfigSource, locatingIn, textsOf } from "../config/load.ts";
import type { NamedText } from "../config/parse/config-files.ts";
import { type Digests, InputReader } from "../config/parse/inputs.ts";

/** Characters of all files at most: they are parsed on the main thread, where so many take about 0.3 s. */
const LARGEST = 1024 * 1024;
const REMEMBERED = 10_000;
const NOWHERE = "nowhere";

/**
 * Where the parts of a configuration in effect are written, as `file:line:column`. Nothing keeps the texts, so the files are read and parsed
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

  /** Undefined for a field that is in no file, and for all fields if the files are others by now, or too large. */
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
    const texts = this.#texts();
    const length = texts.reduce((sum, { text }) => sum + text.length, 0);
    return texts.length === 0 || length > LARGEST ? () => undefined : locatingIn(texts, this.#env);
  }

  /** None if they are not those that were loaded. */
  #texts(): readonly NamedText[] {
    const reader = new InputReader();
    const { texts, problems } = textsOf(this.#source, reader);
    const isSame = [...reader.inputs.files].every(([path, digest]) => this.#files.get(path) === digest);
    return isSame && problems.length === 0 ? texts : [];
  }
}

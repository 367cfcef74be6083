import { dirname, resolve } from "node:path";
import { messageOf } from "../../base/errors.ts";
import type { Path } from "../../base/paths.ts";
import type { TextSource } from "../../policies/schema/source.ts";
import type { Report } from "../../translation/problems/problem.ts";
import { type Resources, shownUrl } from "../../translation/resources/store.ts";
import type { Sources } from "../../translation/sources.ts";
import type { InputReader } from "../parse/inputs.ts";

/** PEM, JSON or several lines in place of a path. Such a text may be a private key: it is neither shown nor looked for on disk. */
const CONTENT = /[\r\n]|^\s*(-----BEGIN |\{)/;

/** The texts that a configuration file names: files, and documents behind URLs. */
export class FileSources implements Sources {
  readonly urls: string[] = [];
  readonly #fileOf: (path: Path) => string;
  readonly #home: string | undefined;
  readonly #resources: Resources;
  readonly #reader: InputReader;
  readonly #report: Report;

  /**
   * Paths are relative to the folder of the file that names them (`fileOf`), else to the working directory, where files that came with a
   * deployment often are. `home` is what `~/` stands for.
   */
  constructor(
    fileOf: (path: Path) => string,
    home: string | undefined,
    resources: Resources,
    reader: InputReader,
    report: Report,
  ) {
    this.#fileOf = fileOf;
    this.#home = home;
    this.#resources = resources;
    this.#reader = reader;
    this.#report = report;
  }

  again(report: Report): Sources {
    return new FileSources(this.#fileOf, this.#home, this.#resources, this.#reader, report);
  }

  readFile(path: Path, name: string): string | undefined {
    return this.#find(path, name, (found) => this.#reader.readText(found));
  }

  readBytes(path: Path, name: string): Buffer | undefined {
    return this.#find(path, name, (found) => this.#reader.readBytes(found));
  }

  #find<T>(path: Path, name: string, read: (found: string) => T): T | undefined {
    if (CONTENT.test(name)) {
      this.#report(path, { message: "is the content of a file; expected its path" });
      return undefined;
    }
    const expanded = this.#expand(name);
    const beside = resolve(dirname(this.#fileOf(path)), expanded);
    const fallback = resolve(expanded);
    const found = this.#reader.exists(beside) ? beside : fallback;
    try {
      return read(found);
    } catch (error) {
      const reason = messageOf(error);
      const nowhere = beside !== fallback && !this.#reader.exists(found);
      const where = nowhere ? ", neither in the configuration's folder nor in the working directory" : "";
      this.#report(path, { message: `cannot read ${name}: ${reason}${where}` });
      return undefined;
    }
  }

  /** The text of a file that the gateway writes itself; undefined until it exists. Its creation counts as a change of the configuration. */
  readIfPresent(file: string): string | undefined {
    if (!this.#reader.exists(file)) return undefined;
    try {
      return this.#reader.readText(file);
    } catch {
      // Its writer reports why it cannot be used.
      return undefined;
    }
  }

  /** The absolute path of a folder that the gateway writes to. */
  folder(path: Path, name: string): string {
    return resolve(dirname(this.#fileOf(path)), this.#expand(name));
  }

  #expand(name: string): string {
    const home = this.#home;
    return home === undefined ? name : name.replace(/^~(?=\/)/, () => home);
  }

  readUrl(path: Path, url: string): string | undefined {
    this.urls.push(url);
    const resource = this.#resources.get(url);
    if (resource === undefined || "text" in resource) return resource?.text;
    this.#report(path, {
      message: `cannot fetch ${shownUrl(url)}: ${resource.problem}; requests that need it get 503 until it has been fetched`,
      warning: true,
    });
    return undefined;
  }

  readText(path: Path, source: TextSource): string | undefined {
    if (typeof source === "string") return source;
    return "file" in source
      ? this.readFile([...path, "file"], source.file)
      : this.readUrl([...path, "url"], source.url);
  }
}

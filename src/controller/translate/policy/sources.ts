import type { Path } from "../../../base/paths.ts";
import type { TextSource } from "../../../policies/schema/source.ts";
import type { Report } from "../../../translation/problems/problem.ts";
import { shownUrl } from "../../../translation/resources/store.ts";
import type { Sources } from "../../../translation/sources.ts";
import { type HostCheck, urlProblem } from "../../../translation/target.ts";
import { TEXT_KINDS, textOfName } from "../../crd/references.ts";
import type { Read } from "../../graph/graph.ts";
import { readText } from "./names.ts";

/** The texts that policies of a cluster name: Secrets, ConfigMaps, and documents that the controller has fetched. */
export class ObjectSources implements Sources {
  readonly urls: string[];
  readonly #read: Read;
  readonly #report: Report;
  readonly #hosts: HostCheck;

  /** `hosts`: which URLs may be fetched. `urls` collects the URLs that are named. */
  constructor(read: Read, report: Report, hosts: HostCheck, urls: string[] = []) {
    this.#read = read;
    this.#report = report;
    this.#hosts = hosts;
    this.urls = urls;
  }

  again(report: Report): Sources {
    // The URLs count: what they are named for needs them.
    return new ObjectSources(this.#read, report, this.#hosts, this.urls);
  }

  readFile(path: Path, name: string): string | undefined {
    const place = textOfName(name);
    if (typeof place === "string") return place;
    if (place === undefined) {
      this.#report(path, { message: "a cluster has no files", expected: "secretKeyRef or configMapKeyRef" });
      return undefined;
    }
    const found = readText(this.#read, place);
    if ("text" in found) return found.text;
    const field = place.kind === TEXT_KINDS.secretKeyRef ? "secretKeyRef" : "configMapKeyRef";
    this.#report([...path, field], { message: found.problem });
    return undefined;
  }

  readBytes(path: Path, name: string): Buffer | undefined {
    const text = this.readFile(path, name);
    return text === undefined ? undefined : Buffer.from(text);
  }

  readUrl(path: Path, url: string): string | undefined {
    const refused = urlProblem(url, this.#hosts);
    if (refused !== undefined) {
      this.#report(path, { message: refused.message });
      return undefined;
    }
    if (!this.urls.includes(url)) this.urls.push(url);
    const document = this.#read.get("FetchedDocument", url)?.document;
    if (document === undefined) {
      this.#report(path, { message: `${shownUrl(url)} has not been fetched yet`, warning: true });
      return undefined;
    }
    if ("text" in document) return document.text;
    this.#report(path, {
      message: `cannot fetch ${shownUrl(url)}: ${document.problem}`,
      cause: { code: "missingDocument" },
    });
    return undefined;
  }

  readText(path: Path, source: TextSource): string | undefined {
    if (typeof source === "string") return source;
    return "file" in source ? this.readFile(path, source.file) : this.readUrl([...path, "url"], source.url);
  }
}

/**
 * The documents that policies name by URL, such as key sets: fetched, put into the graph, and refreshed. In: the URLs that policies
 * name, after each change of the graph. Out: `FetchedDocument`s. One that fails later stays as it was.
 */
import type { Logger } from "../base/log.ts";
import { keyOfObject } from "../kube/keys.ts";
import { type Resource, type ResourceStore, shownUrl } from "../translation/resources/store.ts";
import { defineQuery, type Graph } from "./graph/graph.ts";
import type { FetchedDocument } from "./graph/inputs.ts";
import { backendModel } from "./translate/backends/backends.ts";
import { policyModel } from "./translate/policy/model.ts";

/** The URLs that policies and backends name, sorted. */
const wantedUrls = defineQuery<readonly string[]>("wantedUrls", (read) => {
  const policies = read.list("TracegatePolicy").map((each) => read.query(policyModel, keyOfObject(each)));
  const backends = read.list("TracegateBackend").map((each) => read.query(backendModel, keyOfObject(each)));
  return [...new Set([...policies, ...backends].flatMap((model) => model?.urls ?? []))].sort();
});

/** The number of problems of policies and backends. */
const problemCount = defineQuery<number>("problemCount", (read) => {
  const policies = read.list("TracegatePolicy").map((each) => read.query(policyModel, keyOfObject(each)));
  const backends = read.list("TracegateBackend").map((each) => read.query(backendModel, keyOfObject(each)));
  return [...policies, ...backends].reduce((sum, model) => sum + (model?.problems.length ?? 0), 0);
});

interface DocumentsOptions {
  readonly graph: Graph;
  /** Called after the graph has changed. */
  readonly changed: () => void;
  readonly log: Logger;
  readonly store: ResourceStore;
}

export class Documents {
  readonly #options: DocumentsOptions;
  readonly #store: ResourceStore;
  #wanted: readonly string[] = [];
  #fetching = false;
  #again = false;
  #closed = false;

  constructor(options: DocumentsOptions) {
    this.#options = options;
    this.#store = options.store;
  }

  /** Fetches newly named documents and drops those that no policy names. To be called after changes of the graph. */
  update(): void {
    const wanted = this.#options.graph.query(wantedUrls, "");
    if (wanted === this.#wanted || this.#closed) return;
    this.#wanted = wanted;
    void this.#fetch();
  }

  /** Fetches a document again, if a policy names it; rate-limited, however often proxies request it. */
  want(url: string): void {
    this.#store.refetch(url);
  }

  close(): void {
    this.#closed = true;
    this.#store.close();
  }

  async #fetch(): Promise<void> {
    if (this.#fetching) {
      this.#again = true;
      return;
    }
    this.#fetching = true;
    do {
      this.#again = false;
      await this.#store.fetch(this.#wanted);
    } while (this.#again);
    this.#fetching = false;
    if (this.#closed) return;
    this.#store.keep(this.#wanted, {
      changed: () => Promise.resolve(this.#replace()),
      failed: (url, problem) => {
        this.#options.log.warn("a document could not be fetched", { url: shownUrl(url), problem });
        // The statuses of policies report the problem.
        this.#apply();
      },
    });
    this.#apply();
  }

  /** Brings the documents of the graph up to those of the store. */
  #apply(): void {
    const { graph, changed } = this.#options;
    let touched = false;
    for (const url of this.#wanted) {
      const document = this.#store.resources.get(url);
      if (document === undefined || isSame(graph.get("FetchedDocument", url)?.document, document)) continue;
      graph.set(fetched(url, document));
      touched = true;
    }
    for (const { metadata } of graph.list("FetchedDocument"))
      if (!this.#wanted.includes(metadata.name)) {
        graph.delete("FetchedDocument", metadata.name);
        touched = true;
      }
    if (touched) changed();
  }

  /** False: the new documents would make valid policies invalid, so the former ones stay. */
  #replace(): boolean {
    const { graph } = this.#options;
    const before = graph.list("FetchedDocument");
    const problems = graph.query(problemCount, "");
    for (const url of this.#wanted) {
      const document = this.#store.resources.get(url);
      if (document !== undefined) graph.set(fetched(url, document));
    }
    if (graph.query(problemCount, "") > problems) {
      for (const each of before) graph.set(each);
      this.#options.log.warn("a refreshed document cannot be used; the former one stays");
      return false;
    }
    this.#options.changed();
    return true;
  }
}

function fetched(url: string, document: Resource): FetchedDocument {
  const metadata = { name: url, namespace: "" };
  return { apiVersion: "", kind: "FetchedDocument", metadata, document };
}

function isSame(a: Resource | undefined, b: Resource): boolean {
  if (a === undefined) return false;
  return "text" in a ? "text" in b && a.text === b.text : "problem" in b && a.problem === b.problem;
}

import { messageOf } from "../../base/errors.ts";
import type { Egress } from "../../net/egress.ts";
import { type Fetch, fetchThrough } from "../../upstream/fetch.ts";
import { Resolver } from "../../upstream/resolver.ts";
import { fetchJson } from "./fetch-json.ts";

/** The content of a URL, or why it is unknown. */
export type Resource = { readonly text: string } | { readonly problem: string };

/** The documents that have been fetched so far, by URL. */
export type Resources = ReadonlyMap<string, Resource>;

export const NO_RESOURCES: Resources = new Map();

interface Timing {
  /** Milliseconds after which a fetched document is fetched again. */
  readonly refresh: number;
  /** After one that failed. */
  readonly retry: number;
}

const TIMING: Timing = { refresh: 15 * 60_000, retry: 15_000 };

/** Callbacks about documents in use. */
export interface ResourceListener {
  /** A document has changed. Returns false if the configuration cannot be used with it: then the former one stays. */
  changed(): Promise<boolean>;
  /** A document could not be refreshed; the former one stays. */
  failed(url: string, problem: string): void;
}

/**
 * Documents behind URLs that configurations name: fetched before the first configuration that needs them is in effect, and
 * again from time to time while they are in use. If a later fetch fails or returns an unusable document, the former one stays:
 * otherwise one wrong response of an issuer would block every other change of the configuration.
 */
export class ResourceStore {
  readonly #known = new Map<string, Resource>();
  readonly #timers = new Map<string, NodeJS.Timeout>();
  /** Of which the last document could not be used: when the one in use comes back, that is a change too. */
  readonly #refused = new Set<string>();
  readonly #timing: Timing;
  #fetch: Fetch;
  #listener: ResourceListener | undefined;

  /** `egress` decides which addresses may be connected to. */
  constructor(egress: Egress, timing = TIMING) {
    this.#fetch = fetchThrough(new Resolver("All", egress));
    this.#timing = timing;
  }

  /** From now on another check decides: that of a gateway, whose ports are known once it has read its first configuration. */
  set egress(egress: Egress) {
    this.#fetch = fetchThrough(new Resolver("All", egress));
  }

  get resources(): Resources {
    return this.#known;
  }

  /** Fetches what is not there yet, all at once; what has failed before is tried again. */
  async fetch(urls: readonly string[]): Promise<void> {
    const missing = new Set(urls.filter((url) => !this.#has(url)));
    await Promise.all(
      Array.from(missing, async (url) => {
        this.#known.set(url, await fetchResource(url, this.#fetch));
      }),
    );
  }

  /** Refreshes these documents from now on, and forgets all others. */
  keep(urls: readonly string[], listener: ResourceListener): void {
    this.#listener = listener;
    this.forgetOthers(urls);
    for (const url of new Set(urls)) if (!this.#timers.has(url)) this.#schedule(url, this.#timing.refresh);
  }

  /** Forgets documents that were fetched for a rejected configuration, so that the next attempt fetches them again. */
  forgetOthers(inUse: readonly string[]): void {
    const kept = new Set(inUse);
    for (const url of this.#known.keys()) if (!kept.has(url)) this.#forget(url);
  }

  close(): void {
    for (const timer of this.#timers.values()) clearTimeout(timer);
    this.#timers.clear();
  }

  #has(url: string): boolean {
    const known = this.#known.get(url);
    return known !== undefined && "text" in known;
  }

  #forget(url: string): void {
    clearTimeout(this.#timers.get(url));
    this.#timers.delete(url);
    this.#refused.delete(url);
    this.#known.delete(url);
  }

  #schedule(url: string, delay: number): void {
    // There is one already if the URL was dropped and named again during a refresh.
    clearTimeout(this.#timers.get(url));
    const timer = setTimeout(() => void this.#refresh(url), delay);
    timer.unref();
    this.#timers.set(url, timer);
  }

  async #refresh(url: string): Promise<void> {
    const before = this.#known.get(url);
    const fetched = await fetchResource(url, this.#fetch);
    // No configuration needs it.
    if (!this.#timers.has(url)) return;
    if ("problem" in fetched) {
      this.#schedule(url, this.#timing.retry);
      this.#listener?.failed(url, fetched.problem);
      return;
    }
    const same = before !== undefined && "text" in before && before.text === fetched.text && !this.#refused.has(url);
    const usable = same || (await this.#offer(url, fetched, before));
    if (this.#timers.has(url)) this.#schedule(url, usable ? this.#timing.refresh : this.#timing.retry);
  }

  /** Puts `fetched` in the place of `before`, if the configuration can be used with it. */
  async #offer(url: string, fetched: Resource, before: Resource | undefined): Promise<boolean> {
    this.#known.set(url, fetched);
    const usable = (await this.#listener?.changed()) ?? true;
    if (usable) this.#refused.delete(url);
    else this.#refused.add(url);
    if (!usable && before !== undefined && this.#known.get(url) === fetched) this.#known.set(url, before);
    return usable;
  }
}

async function fetchResource(url: string, fetch: Fetch): Promise<Resource> {
  try {
    return { text: await fetchJson(url, fetch) };
  } catch (error) {
    return { problem: messageOf(error) };
  }
}

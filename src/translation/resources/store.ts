import { messageOf } from "../../base/errors.ts";
import { OwnSockets } from "../../base/own-sockets.ts";
import { REDACTED, redactUrls } from "../../base/redaction.ts";
import { Egress, type LookupRules, NO_LOOKUP_RULES } from "../../net/egress.ts";
import { type Fetch, fetchThrough } from "../../upstream/callouts/fetch.ts";
import { Resolver } from "../../upstream/resolve/resolver.ts";
import { fetchDocument } from "./fetch-document.ts";

/** The content of a URL, or why it is unknown. */
export type Resource = { readonly text: string } | { readonly problem: string };

/** The documents that have been fetched so far, by URL. */
export type Resources = ReadonlyMap<string, Resource>;

export const NO_RESOURCES: Resources = new Map();

/** A document that could not be fetched, or could not be used. */
export interface MissingDocument {
  /** Without its query. */
  readonly url: string;
  readonly problem: string;
  /** ISO 8601: the time of the first failure in a row. */
  readonly since: string;
  /** ISO 8601 */
  readonly nextAttemptAt: string;
  /** A former document is in use; otherwise requests that need the document are rejected. */
  readonly formerInUse: boolean;
}

interface Timing {
  /** Milliseconds after which a fetched document is fetched again. */
  readonly refresh: number;
  /** After a failed fetch; doubled with each further failure, up to `longest`. */
  readonly retry: number;
  readonly longest?: number;
  /** The minimum time between two fetches of a document that `refetch` requests. */
  readonly cooldown?: number;
}

const TIMING: Required<Timing> = { refresh: 15 * 60_000, retry: 1000, longest: 60_000, cooldown: 30_000 };

/** Callbacks about documents in use. */
interface ResourceListener {
  /** A document has changed, or has been fetched for the first time. Returns false if the configuration cannot use it; the configuration then stays as it was. */
  changed(): Promise<boolean>;
  /** An attempt to fetch a document has failed. `former`: an earlier one stays in use. */
  failed(url: string, problem: string, former: boolean): void;
}

/** Failures in a row. */
interface Failing {
  readonly since: string;
  readonly count: number;
  readonly problem: string;
}

/**
 * Documents behind URLs that configurations name: fetched when a configuration names them, and again from time to time while they are
 * in use. A configuration takes effect without a document that cannot be fetched; the store retries with backoff. If a later fetch fails or
 * returns an unusable document, the former one stays in use: otherwise one wrong response of an issuer would block every other change of
 * the configuration.
 */
export class ResourceStore {
  readonly #known = new Map<string, Resource>();
  readonly #timers = new Map<string, { readonly timer: NodeJS.Timeout; readonly at: number }>();
  /** `performance.now()` of the last fetch. */
  readonly #fetchedAt = new Map<string, number>();
  readonly #failing = new Map<string, Failing>();
  /** Of which the last document could not be used: when the one in use comes back, that is a change too. */
  readonly #refused = new Set<string>();
  readonly #timing: Required<Timing>;
  #fetch: Fetch;
  #listener: ResourceListener | undefined;

  /** `egress` decides which addresses may be connected to. */
  constructor(egress: Egress, timing: Timing = TIMING) {
    this.#fetch = fetchThrough(new Resolver("All", egress));
    this.#timing = { ...TIMING, ...timing };
  }

  /** The store of a process that has read its file but does not listen yet. */
  static ofFile(): ResourceStore {
    return new ResourceStore(egressOfFile(NO_LOOKUP_RULES));
  }

  /** Applies the lookup rules of `loaded`, which may name the first documents, until the gateway replaces the check. */
  obeying<
    Loaded extends { readonly ok: false } | { readonly ok: true; readonly config: { readonly dns: LookupRules } },
  >(loaded: Loaded): Loaded {
    if (loaded.ok) this.egress = egressOfFile(loaded.config.dns);
    return loaded;
  }

  /** Replaces the check, once the gateway has read its first configuration and knows its ports. */
  set egress(egress: Egress) {
    this.#fetch = fetchThrough(new Resolver("All", egress));
  }

  get resources(): Resources {
    return this.#known;
  }

  /** The documents in use whose last fetch failed. */
  get missing(): readonly MissingDocument[] {
    const missing: MissingDocument[] = [];
    for (const [url, { problem, since }] of this.#failing) {
      const next = this.#timers.get(url)?.at;
      if (next === undefined) continue;
      const nextAttemptAt = new Date(Date.now() + Math.max(0, next - performance.now())).toISOString();
      missing.push({ url: shownUrl(url), problem, since, nextAttemptAt, formerInUse: this.#has(url) });
    }
    return missing;
  }

  /** Fetches what is not there yet, all at once; what has failed before is tried again. */
  async fetch(urls: readonly string[]): Promise<void> {
    const missing = new Set(urls.filter((url) => !this.#has(url)));
    await Promise.all(
      Array.from(missing, async (url) => {
        this.#known.set(url, await this.#ask(url));
      }),
    );
  }

  /** Refreshes these documents from now on, and forgets all others. */
  keep(urls: readonly string[], listener: ResourceListener): void {
    this.#listener = listener;
    this.forgetOthers(urls);
    for (const url of new Set(urls)) if (!this.#timers.has(url)) this.#schedule(url, this.#pause(url));
  }

  /**
   * Fetches a document in use again because it may have changed: at once, or when the cooldown since the last fetch has passed. However often
   * clients cause this, there is at most one fetch per cooldown.
   */
  refetch(url: string): void {
    const scheduled = this.#timers.get(url);
    if (scheduled === undefined) return;
    const at = (this.#fetchedAt.get(url) ?? Number.NEGATIVE_INFINITY) + this.#timing.cooldown;
    if (at < scheduled.at) this.#schedule(url, Math.max(0, at - performance.now()));
  }

  /** Forgets documents that were fetched for a rejected configuration, so that the next attempt fetches them again. */
  forgetOthers(inUse: readonly string[]): void {
    const kept = new Set(inUse);
    for (const url of this.#known.keys()) if (!kept.has(url)) this.#forget(url);
  }

  close(): void {
    for (const { timer } of this.#timers.values()) clearTimeout(timer);
    this.#timers.clear();
  }

  #has(url: string): boolean {
    const known = this.#known.get(url);
    return known !== undefined && "text" in known;
  }

  #forget(url: string): void {
    clearTimeout(this.#timers.get(url)?.timer);
    for (const map of [this.#timers, this.#refused, this.#known, this.#failing, this.#fetchedAt]) map.delete(url);
  }

  /** Fetches it and counts failures. */
  async #ask(url: string): Promise<Resource> {
    this.#fetchedAt.set(url, performance.now());
    const resource = await fetchResource(url, this.#fetch);
    if ("problem" in resource) this.#failed(url, resource.problem);
    else this.#failing.delete(url);
    return resource;
  }

  #failed(url: string, problem: string): void {
    const { since = new Date().toISOString(), count = 0 } = this.#failing.get(url) ?? {};
    this.#failing.set(url, { since, count: count + 1, problem });
  }

  /** Milliseconds until the next fetch. Without jitter, all replicas would query a recovering server at the same moment. */
  #pause(url: string): number {
    const failures = this.#failing.get(url)?.count ?? 0;
    const { refresh, retry, longest } = this.#timing;
    if (failures === 0) return refresh;
    const pause = Math.min(longest, retry * 2 ** Math.min(failures - 1, 20));
    return pause * (0.5 + Math.random() / 2);
  }

  #schedule(url: string, delay: number): void {
    // There is one already if the URL was dropped and named again during a refresh.
    clearTimeout(this.#timers.get(url)?.timer);
    const timer = setTimeout(() => void this.#refresh(url), delay);
    timer.unref();
    this.#timers.set(url, { timer, at: performance.now() + delay });
  }

  async #refresh(url: string): Promise<void> {
    const before = this.#known.get(url);
    const fetched = await this.#ask(url);
    // No configuration needs it.
    if (!this.#timers.has(url)) return;
    if ("problem" in fetched) {
      if (!this.#has(url)) this.#known.set(url, fetched);
      this.#listener?.failed(url, fetched.problem, this.#has(url));
    } else {
      const same = before !== undefined && "text" in before && before.text === fetched.text && !this.#refused.has(url);
      if (!same && !(await this.#offer(url, fetched, before))) this.#failed(url, "the document cannot be used");
    }
    if (this.#timers.has(url)) this.#schedule(url, this.#pause(url));
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

/** The operator chose the targets, and nothing listens yet. */
function egressOfFile(lookupRules: LookupRules): Egress {
  return new Egress({ provenance: "operator", lookupRules }, new OwnSockets());
}

/** A URL for statuses and logs, without its query, which may hold a secret. */
export function shownUrl(url: string): string {
  const mark = url.indexOf("?");
  return mark < 0 ? redactUrls(url) : `${redactUrls(url.slice(0, mark))}?${REDACTED}`;
}

async function fetchResource(url: string, fetch: Fetch): Promise<Resource> {
  try {
    return { text: await fetchDocument(url, fetch) };
  } catch (error) {
    return { problem: messageOf(error) };
  }
}

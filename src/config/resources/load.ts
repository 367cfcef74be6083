import type { LoadResult } from "../load.ts";
import type { ResourceStore, Resources } from "./store.ts";

/**
 * Loads a configuration with everything behind the URLs that it names: `load` is called until nothing is missing. Usually
 * that is once, or twice where there is something new to fetch; a document may name a further one. What cannot be fetched
 * is a problem of the configuration, at the place of its URL.
 */
export async function loadWithResources(
  load: (resources: Resources) => LoadResult | Promise<LoadResult>,
  store: ResourceStore,
): Promise<LoadResult> {
  const tried = new Set<string>();
  for (;;) {
    const loaded = await load(store.resources);
    const missing = loaded.urls.filter((url) => !tried.has(url) && !hasText(store.resources, url));
    if (missing.length === 0) return loaded;
    for (const url of missing) tried.add(url);
    await store.fetch(missing);
  }
}

function hasText(resources: Resources, url: string): boolean {
  const known = resources.get(url);
  return known !== undefined && "text" in known;
}

import { once } from "node:events";
import { statSync } from "node:fs";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { moduleUrl } from "../base/app-root.ts";
import { type PackedIr, type PackedParts, packIr } from "../ir/packed-ir.ts";
import { strictly } from "../translation/problems/diagnostics.ts";
import { NO_RESOURCES, type ResourceStore, type Resources } from "../translation/resources/store.ts";
import { type ConfigSource, type LoadResult, loadConfig } from "./load.ts";
import { InputReader } from "./parse/inputs.ts";

type Env = Readonly<Record<string, string | undefined>>;

/** Loading a file of this size takes about 100 ms, as long as starting a thread. */
const LARGE_BYTES = 256 * 1024;
/**
 * Room for new objects of the thread. V8 keeps the pages of a thread that has ended for a while, so this much stays: with 64
 * a reload of 10,000 routes left 90 MiB more than with 12, for 10 % less CPU.
 */
const YOUNG_GENERATION_MB = 12;

/** A configuration as the main thread keeps it, or why it could not be loaded. */
export type PackedLoad =
  | Extract<LoadResult, { ok: false }>
  | (Omit<Extract<LoadResult, { ok: true }>, "ir"> & { readonly configuration: PackedIr });

/** The arguments of the thread. */
export interface LoadTask {
  readonly source: ConfigSource;
  readonly env: Env;
  readonly resources: Resources;
  readonly packed: PackedParts | undefined;
}

/**
 * As `loadConfig`, but a large file is loaded in a thread of its own, so that the caller's stays responsive:
 * for reloads. What is in `previous`, the configuration in effect, stays where it is in memory. Rejects when that thread fails, as
 * when memory runs out.
 */
export async function loadConfigAside(
  source: ConfigSource,
  env: Env,
  resources = NO_RESOURCES,
  previous?: PackedIr,
): Promise<PackedLoad> {
  const packed = previous === undefined ? undefined : { routes: previous.routes, addresses: previous.addresses };
  if (!isLarge(source)) return packLoaded(loadConfig(source, env, resources), packed);
  const task: LoadTask = { source, env: { ...env }, resources, packed };
  const worker = new Worker(moduleUrl("config/load-worker"), {
    workerData: task,
    name: "configuration",
    resourceLimits: { maxYoungGenerationSizeMb: YOUNG_GENERATION_MB },
  });
  const ended = new AbortController();
  worker.once("exit", (code) =>
    ended.abort(new Error(`the thread that loads the configuration ended with code ${code}`)),
  );
  try {
    const [result] = (await once(worker, "message", { signal: ended.signal })) as [PackedLoad];
    return result;
  } finally {
    await worker.terminate();
  }
}

/** A configuration with warnings is not valid, as `--strict` wants it. */
export function strictLoad(loaded: PackedLoad): PackedLoad {
  if (!loaded.ok) return loaded;
  const { warnings, inputs, urls } = loaded;
  const warned = warnings.some(({ severity }) => severity === "warning");
  return warned ? { ok: false, diagnostics: strictly(warnings), inputs, urls } : loaded;
}

export function packLoaded(loaded: LoadResult, previous?: PackedParts): PackedLoad {
  if (!loaded.ok) return loaded;
  const { ir, ...others } = loaded;
  return { ...others, configuration: packIr(ir, previous) };
}

function isLarge(source: ConfigSource): boolean {
  if (source.kind === "text") return source.text.length > LARGE_BYTES;
  const texts = source.kind === "texts" ? source.texts : [];
  const sizes = source.kind === "files" ? source.paths.map(sizeOf) : texts.map(({ text }) => text.length);
  return sizes.reduce((sum, size) => sum + size, 0) > LARGE_BYTES;
}

/** Bytes of a file or of the configuration files in a folder; 0 if it cannot be read, which loading it reports. */
function sizeOf(path: string): number {
  try {
    const names = new InputReader().names(path);
    return (names?.map((name) => join(path, name)) ?? [path]).reduce((sum, file) => sum + statSync(file).size, 0);
  } catch {
    return 0;
  }
}

/**
 * Loads a configuration with everything behind the URLs that it names: `load` is called until nothing is missing. Usually
 * that is once, or twice where there is something new to fetch; a document may name a further one. What cannot be fetched
 * is a problem of the configuration, at the place of its URL.
 */
export async function loadWithResources<Loaded extends { readonly urls: readonly string[] }>(
  load: (resources: Resources) => Loaded | Promise<Loaded>,
  store: ResourceStore,
): Promise<Loaded> {
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

/** Proves that package-lock.json is complete for every platform and names no registry, so that `npm ci` works on any machine. */
import { readText } from "./lib/files.ts";
import type { Result } from "./lib/report.ts";

type Versions = Readonly<Record<string, string>>;

interface Entry {
  readonly version?: string;
  readonly resolved?: string;
  readonly dependencies?: Versions;
  readonly devDependencies?: Versions;
  readonly optionalDependencies?: Versions;
}

/** Where Node.js would look for `name` from the package in folder `from`: there, and in every folder above. */
function* places(from: string, name: string): Generator<string> {
  const prefix = from === "" ? "" : `${from}/`;
  yield `${prefix}node_modules/${name}`;
  const above = from.lastIndexOf("node_modules/");
  if (above >= 0) yield* places(from.slice(0, above).replace(/\/$/, ""), name);
}

export function checkLockfile(): Result {
  const lock: { readonly packages: Readonly<Record<string, Entry>> } = JSON.parse(readText("package-lock.json"));
  const manifest: Entry = JSON.parse(readText("package.json"));
  const problems: string[] = [];
  for (const [path, entry] of Object.entries(lock.packages)) {
    if (entry.resolved !== undefined)
      problems.push(`package-lock.json: ${path} names a registry; run npm with omit-lockfile-registry-resolved=true`);
    const needs = { ...entry.dependencies, ...entry.devDependencies, ...entry.optionalDependencies };
    for (const [name, version] of Object.entries(needs))
      if (![...places(path, name)].some((place) => place in lock.packages))
        problems.push(`package-lock.json: ${name}@${version}, which ${path || "the project"} needs, has no entry`);
  }
  for (const kind of ["dependencies", "devDependencies"] as const)
    for (const [name, version] of Object.entries(manifest[kind] ?? {})) {
      const locked = lock.packages[`node_modules/${name}`]?.version;
      if (locked !== version)
        problems.push(`package.json: ${name} is ${version}, locked ${locked ?? "not at all"}; pin it exactly`);
    }
  return { problems, summary: `${Object.keys(lock.packages).length - 1} packages` };
}

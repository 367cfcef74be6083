/**
 * Proves that imports point one way only, that no module and no folder is part of a cycle, that heavy libraries stay in their
 * rooms, and that a thread loads only what it needs.
 */
import { dirname, join } from "node:path/posix";
import { projectFiles, readText } from "./lib/files.ts";
import type { Result } from "./lib/report.ts";
import { type Import, importsOf } from "./lib/source.ts";

/** The rooms of src/ from the bottom to the top: each may import from itself and from those before it. */
export const ROOMS: readonly string[] = [
  "gen",
  "base",
  "net",
  "cel",
  "trace",
  "telemetry",
  "recorder",
  "tls",
  "http",
  "upstream",
  "acme",
  "policies",
  "ir",
  "translation",
  "config",
  "proxy",
  "rehearsal",
  "impact",
  "worker",
  "report",
  "admin",
  "kube",
  "xds",
  "controller",
  "cli",
  "tui",
  "main",
];
/** The rooms that serve requests. Those in VIEWS see them only through snapshots and the admin interface. */
const DATA_PLANE = ["net", "tls", "http", "upstream", "policies", "proxy", "worker"];
const VIEWS = ["report", "admin", "cli", "tui"];
/** The web view, which browsers run. No room imports it. */
const WEB_VIEW = "ui";
/** What it may import: answers of the admin server, and what they consist of. The build checks that none of it needs Node.js. */
const SHOWN_IN_WEB_VIEW = ["base", "cel", "trace", "telemetry", "recorder", "rehearsal", "impact", "report", "admin"];
/** `import()` that may point upwards: a command loads the terminal library only when a terminal is to be drawn on. */
const LAZY_UPWARDS: Readonly<Record<string, readonly string[]>> = { cli: ["tui"] };
/** Libraries that only some rooms may import, because they are large or tie the code to one place. */
const CONFINED: readonly { readonly library: RegExp; readonly rooms: readonly string[] }[] = [
  { library: /^(ink|react|ink-[\w-]+)(\/|$)/, rooms: ["tui"] },
  { library: /^(@kubernetes\/|ws$)/, rooms: ["kube"] },
  // Calls of policies and telemetry go through upstream/callouts.
  { library: /^@grpc\//, rooms: ["xds"] },
  { library: /^(preact|@preact)(\/|$)/, rooms: [WEB_VIEW] },
];

/**
 * Modules that the entry of a thread must not load eagerly, because each costs every thread milliseconds and memory. A policy
 * or command that needs one of them imports it lazily.
 */
const THREADS: readonly { readonly entry: string; readonly without: RegExp; readonly why: string }[] = [
  {
    entry: "src/worker/worker.ts",
    without:
      /^(zod|yaml|react|ink|pprof-format|@grpc\/[\w-]+|@kubernetes\/[\w-]+|@bufbuild\/protobuf(?!\/wire)|node:(http|https|http2|tls|zlib|child_process))(\/|$)/,
    why: "a worker serves requests: it neither reads configuration nor draws or exports",
  },
  {
    entry: "src/policies/basic-auth/hashing-thread.ts",
    without: /^(?!node:|bcryptjs$)/,
    why: "this thread only hashes passwords",
  },
];

/** `src/http/h1/parse.ts` → `http`, `src/main.ts` → `main`, `ui/frame.tsx` → `ui`. */
function roomOf(path: string): string {
  if (path.startsWith(`${WEB_VIEW}/`)) return WEB_VIEW;
  return path.split("/")[1]?.replace(/\.ts$/, "") ?? "";
}

/** The rooms that a room may import, from the bottom to the top. */
export function mayImport(room: string): readonly string[] {
  const below = ROOMS.slice(0, ROOMS.indexOf(room));
  return VIEWS.includes(room) ? below.filter((each) => !DATA_PLANE.includes(each)) : below;
}

/** Why `from` may not import `item`, or undefined when it may. */
function violation(from: string, to: string, kind: Import["kind"]): string | undefined {
  if (from === WEB_VIEW)
    return to === WEB_VIEW || SHOWN_IN_WEB_VIEW.includes(to) ? undefined : `the web view may not see ${to}`;
  if (to === WEB_VIEW) return "browsers run the web view, the gateway does not";
  const upper = ROOMS.indexOf(from);
  const lower = ROOMS.indexOf(to);
  if (upper < 0) return `src/${from} is not a room; the rooms are ${ROOMS.join(", ")}`;
  if (lower < 0) return `src/${to} is not a room; the rooms are ${ROOMS.join(", ")}`;
  if (VIEWS.includes(from) && DATA_PLANE.includes(to)) return `${from} may not see the data plane (${to})`;
  if (lower <= upper) return undefined;
  if (kind === "lazy" && LAZY_UPWARDS[from]?.includes(to)) return undefined;
  return `${from} may import only from rooms before it, not from ${to}`;
}

/** The shortest cycle through `start`, as the files from `start` to the last one before it repeats; undefined without a cycle. */
function shortestCycle(graph: ReadonlyMap<string, readonly string[]>, start: string): string[] | undefined {
  const cameFrom = new Map<string, string>();
  const queue = [start];
  for (const node of queue) {
    for (const next of graph.get(node) ?? []) {
      if (next === start) {
        const path = [node];
        for (let at = node; at !== start; ) {
          at = cameFrom.get(at) ?? start;
          path.unshift(at);
        }
        return path;
      }
      if (cameFrom.has(next)) continue;
      cameFrom.set(next, node);
      queue.push(next);
    }
  }
  return undefined;
}

/** The shortest import cycle of every module that is part of one; each cycle once. */
export function cycles(graph: ReadonlyMap<string, readonly string[]>): string[][] {
  const found = new Map<string, string[]>();
  for (const start of graph.keys()) {
    const cycle = shortestCycle(graph, start);
    const key = [...(cycle ?? [])].sort().join();
    if (cycle !== undefined && !found.has(key)) found.set(key, cycle);
  }
  return [...found.values()];
}

/** Import chains from `entry` to each external module that `without` matches; `graph` holds what each module loads with it. */
export function needless(
  graph: ReadonlyMap<string, readonly string[]>,
  entry: string,
  without: RegExp,
): { readonly module: string; readonly chain: readonly string[] }[] {
  const cameFrom = new Map<string, string | undefined>([[entry, undefined]]);
  const found = [];
  // Breadth first; keys of a Map are visited in the order they come in, those added meanwhile too.
  for (const node of cameFrom.keys()) {
    if (!node.startsWith("src/") && without.test(node)) {
      const chain = [];
      for (let at = cameFrom.get(node); at !== undefined; at = cameFrom.get(at)) chain.unshift(at);
      found.push({ module: node, chain });
    }
    for (const next of graph.get(node) ?? []) if (!cameFrom.has(next)) cameFrom.set(next, node);
  }
  return found;
}

/** An import from a file to another below src/. */
interface Edge {
  /** `src/a/b.ts:12` */
  readonly where: string;
  readonly from: string;
  readonly to: string;
}

/** Imports that show why a folder depends on the next one of a circle, per step of it. */
const SHOWN = 3;

/** A folder is closed when it can be read without those that use it: each circle between folders, with imports that make it. */
function folderCircles(edges: readonly Edge[]): string[] {
  const between = Map.groupBy(
    edges.filter(({ from, to }) => dirname(from) !== dirname(to)),
    ({ from }) => dirname(from),
  );
  const graph = new Map([...between].map(([folder, out]) => [folder, [...new Set(out.map(({ to }) => dirname(to)))]]));
  return cycles(graph).map((circle) => {
    const because = circle.flatMap((folder, index) => {
      const next = circle[index + 1] ?? circle[0];
      const imports = (between.get(folder) ?? []).filter(({ to }) => dirname(to) === next);
      const more = imports.length > SHOWN ? [`    and ${imports.length - SHOWN} more`] : [];
      return [...imports.slice(0, SHOWN).map(({ where, to }) => `    ${where} imports ${to}`), ...more];
    });
    return [`circle of folders: ${[...circle, circle[0]].join(" → ")}`, ...because].join("\n");
  });
}

/** Checks every module below src/ and ui/. Tests may import from any room: they set real things up around what they test. */
export function checkLayers(): Result {
  const sources = projectFiles().filter(
    (path) => /^(src\/.*\.ts|ui\/.*\.tsx?)$/.test(path) && !path.endsWith(".test.ts"),
  );
  return layersOf(new Map(sources.map((path) => [path, readText(path)])), THREADS);
}

/** What is wrong with the imports of `sources`, texts by path. */
export function layersOf(sources: ReadonlyMap<string, string>, threads: typeof THREADS): Result {
  const problems: string[] = [];
  const edges: Edge[] = [];
  const graph = new Map<string, readonly string[]>();
  /** What each module loads with it: without types, with packages. */
  const loads = new Map<string, readonly string[]>();
  let count = 0;
  for (const [path, text] of sources) {
    const room = roomOf(path);
    const targets: string[] = [];
    const loaded: string[] = [];
    for (const item of importsOf(text)) {
      count++;
      const where = `${path}:${item.line}`;
      if (item.specifier.startsWith(".")) {
        const target = join(dirname(path), item.specifier);
        // Lazy imports too: what is loaded late is still needed to understand the module.
        // A page and the list of pages name each other.
        if (room !== WEB_VIEW) {
          targets.push(target);
          edges.push({ where, from: path, to: target });
        }
        if (item.kind === "static") loaded.push(target);
        const why = /^(src|ui)\//.test(target)
          ? violation(room, roomOf(target), item.kind)
          : "imports from outside src/ and ui/";
        if (why !== undefined) problems.push(`${where}: ${item.specifier}: ${why}`);
      } else {
        if (item.kind === "static") loaded.push(item.specifier);
        const confined = CONFINED.find(({ library }) => library.test(item.specifier));
        if (confined !== undefined && !confined.rooms.includes(room))
          problems.push(`${where}: ${item.specifier} belongs to ${confined.rooms.join(", ")} only`);
      }
    }
    graph.set(path, targets);
    loads.set(path, loaded);
    if (/new URL\([^)]*\.ts["'`]\s*,\s*import\.meta\.url/.test(text))
      problems.push(
        `${path}: a .ts path in new URL() is not there after the build; use moduleUrl of src/base/app-root.ts`,
      );
  }
  for (const { entry, without, why } of threads) {
    if (!loads.has(entry)) problems.push(`${entry}: there is no such entry of a thread; correct scripts/layers.ts`);
    for (const { module, chain } of needless(loads, entry, without))
      problems.push(`${chain.join(" → ")}: loads ${module} at the start of a thread: ${why}`);
  }
  for (const cycle of cycles(graph)) problems.push(`cycle: ${[...cycle, cycle[0]].join(" → ")}`);
  problems.push(...folderCircles(edges));
  const folders = new Set([...sources.keys()].map((path) => dirname(path)));
  return { problems, summary: `${sources.size} modules in ${folders.size} folders, ${count} imports` };
}

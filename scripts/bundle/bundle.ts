import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, relative } from "node:path/posix";
import { type OutputChunk, type Plugin, rolldown } from "rolldown";
import { root } from "../lib/files.ts";

/**
 * Modules that are started by name: programs by the launchers, threads through `moduleUrl`; paths below src/ without extension.
 * Each gets its own bundle, so that it loads only what it needs, even where it shares modules with others.
 */
const ENTRIES = [
  "main",
  "worker/worker",
  "config/load-worker",
  "rehearsal/rehearsal-worker",
  "impact/impact-worker",
  "policies/basic-auth/hashing-thread",
  "cli/main",
] as const;

/**
 * The terminal UI: an ES module, because its layout library starts with a top-level `await`. The terminal library is only
 * loaded when there is a terminal to draw on, so it has no code cache.
 */
const TERMINAL_UI = "tui/views/trace-view";
const TERMINAL_UI_FILE = `./${TERMINAL_UI.replaceAll("/", "-")}.mjs`;
/** Ink imports it only when DEV is set. */
const NOT_INSTALLED = ["react-devtools-core"];

/** Folder below dist/. One level deep, because the copies of src/base/app-root.ts in it find the package's root from there. */
const FOLDER = "code";

export interface Bundled {
  /** Paths of the bundles. */
  readonly files: readonly string[];
  /** Absolute paths of all files that are in them. */
  readonly modules: ReadonlySet<string>;
}

/** Writes `dist/code/`, and for each entry a file of its name in `dist/` that starts it. */
export async function bundle(dist: string): Promise<Bundled> {
  mkdirSync(`${dist}/${FOLDER}`, { recursive: true });
  const [loader] = await chunksOf("scripts/bundle/loader", "loader", "cjs");
  const files: string[] = [];
  const modules = new Set<string>();
  const write = (chunks: readonly OutputChunk[], wrap: (code: string) => string): void => {
    for (const { fileName, code, moduleIds } of chunks) {
      files.push(`${dist}/${FOLDER}/${fileName}`);
      writeFileSync(`${dist}/${FOLDER}/${fileName}`, wrap(code));
      for (const id of moduleIds) modules.add(id);
    }
  };
  for (const entry of ENTRIES) {
    const name = entry.replaceAll("/", "-");
    write(await chunksOf(`src/${entry}`, name, "cjs"), wrapped);
    const start = `${dist}/${entry}.cjs`;
    mkdirSync(dirname(start), { recursive: true });
    const folder = `\`\${__dirname}/${relative(dirname(start), `${dist}/${FOLDER}`)}\``;
    writeFileSync(start, `${loader?.code}run(${folder}, "${name}.cjs");\n`);
  }
  write(await chunksOf(`src/${TERMINAL_UI}`, TERMINAL_UI.replaceAll("/", "-"), "esm"), (code) => code);
  return { files, modules };
}

/** The start of the executable (executable.ts). */
export async function bundleExecutableStart(): Promise<string> {
  const [start] = await chunksOf("scripts/bundle/executable", "executable", "cjs");
  return start?.code ?? "";
}

/** Names are kept and lines are those of formatted code, so a stack trace can be read without a source map. */
async function chunksOf(entry: string, name: string, format: "cjs" | "esm"): Promise<OutputChunk[]> {
  const extension = format === "cjs" ? "cjs" : "mjs";
  const made = await rolldown({
    input: { [name]: `${root}${entry}.ts` },
    cwd: root,
    platform: "node",
    external: NOT_INSTALLED,
    // React brings a development build, three times the size, and uses it by default.
    transform: { define: { "process.env.NODE_ENV": '"production"', "process.env.DEV": "undefined" } },
    plugins: format === "cjs" ? [terminalUi, webCrypto, withoutNotes] : [],
    logLevel: "warn",
  });
  try {
    const { output } = await made.generate({
      format,
      entryFileNames: `[name].${extension}`,
      chunkFileNames: `${name}-[name].${extension}`,
      comments: false,
    });
    return output.filter((item) => item.type === "chunk");
  } finally {
    await made.close();
  }
}

/** `import()` of the terminal UI becomes that of its own bundle. */
const terminalUi: Plugin = {
  name: "terminal-ui",
  resolveId: (source) => (source.endsWith(`/${TERMINAL_UI}.ts`) ? { id: TERMINAL_UI_FILE, external: true } : undefined),
};

const NO_CRYPTO = "no-crypto";
/** bcryptjs imports `crypto` for programs without Web Crypto, which Node.js has had since 23. */
const webCrypto: Plugin = {
  name: "web-crypto",
  resolveId: (source, importer) =>
    source === "crypto" && importer?.includes("/bcryptjs/") ? { id: NO_CRYPTO } : undefined,
  load: (id) => (id === NO_CRYPTO ? "export default {};" : undefined),
};

/** Heads of the methods of zod by which a schema gets its description, title and other notes. */
const NOTES = ["describe(description) {", "meta(...args) {"];
/**
 * Only `npm run generate` reads notes, and zod copies a schema to note something: without them, a start makes a quarter of the schemas
 * less and saves 20 ms of CPU, and V8 does not optimize their constructor, for which it would page in 5 MiB of its compiler.
 */
const withoutNotes: Plugin = {
  name: "without-notes",
  load(id) {
    if (!id.endsWith("/zod/v4/classic/schemas.js")) return undefined;
    return NOTES.reduce(
      (text, head) => {
        if (!text.includes(head)) throw new Error(`zod has no method "${head}" in ${id}; adapt NOTES`);
        return text.replace(head, `${head} return this;`);
      },
      readFileSync(id, "utf8"),
    );
  },
};

/** Modules of Node.js that load at their first use: `node:crypto` alone takes 6 ms of a thread's start. */
const LAZY = new Set(["crypto", "zlib", "child_process", "inspector/promises", "dns", "v8", "tty", "http"]);

/**
 * Rewrites rolldown's `let node_x = require("node:x")` and each `node_x.y`. Leaves a module alone that is used in any other way,
 * such as being imported as a whole.
 */
export function withLazyModules(code: string): string {
  const declarations = [...code.matchAll(/^let (node_\w+) = require\("node:([^"]+)"\);$/gm)];
  return declarations.reduce((text, [declaration, name, id = ""]) => {
    const whole = new RegExp(`(?<![\\w$.])${name}\\b(?!\\.)`, "g");
    if (!LAZY.has(id) || text.match(whole)?.length !== 1) return text;
    // `new node_x().Y()` would construct node_x: a class needs parentheses.
    const classes = new RegExp(`\\bnew ${name}\\.([\\w$.]+)`, "g");
    const uses = new RegExp(`(?<![\\w$.])${name}\\b(?!\\(\\))`, "g");
    const load = `let loaded_${name}; function ${name}() { return (loaded_${name} ??= require("node:${id}")); }`;
    // In the place of the declaration, so that lines stay what they are.
    const [before = "", after = ""] = text.split(declaration);
    return before + load + after.replace(classes, `new (${name}().$1)`).replace(uses, `${name}()`);
  }, code);
}

/**
 * The form that loader.ts runs. Escapes keep the text at one byte per character, in memory too; they would not work in comments,
 * but the bundler has removed all of them. The wrapper's head is on the code's first line, so that line numbers are the bundle's.
 */
function wrapped(code: string): string {
  const ascii = withLazyModules(code)
    .replaceAll(`import("${TERMINAL_UI_FILE}")`, `importModule("${TERMINAL_UI_FILE}")`)
    .replace(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
  return `(function (exports, require, module, __filename, __dirname, importModule) {${ascii}\n})`;
}

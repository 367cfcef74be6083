import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { basename, extname } from "node:path";
import { gzipSync } from "node:zlib";
import { type OutputChunk, type Plugin, rolldown } from "rolldown";
import { WEB_VIEW_FOLDER } from "../../src/admin/server/web-view.ts";
import { root } from "../lib/files.ts";
import { webDocuments } from "./web-documents.ts";

/** Most bytes of the files that the first page needs, with gzip: it opens in a blink, also through a port-forward. */
const MOST = 40 * 1024;
/** And of these with the other pages. */
const MOST_OF_ALL = 80 * 1024;
/** Characters of a hash in the name of a file. */
const HASH_LENGTH = 12;

export interface WebView {
  /** Bytes of the files that the first page needs, with gzip. */
  readonly size: number;
  /** The same with the other pages, without documents. */
  readonly all: number;
  /** Absolute paths of all modules in it. */
  readonly modules: readonly string[];
}

/**
 * Writes the web view to `dist/ui/`: `index.html`, and what it names under names with the hash of their content, so that browsers keep
 * them forever; each also compressed. Processes that serve an earlier one go on, because its files stay.
 * @throws Error if it is too large, or needs what a browser does not have
 */
export async function bundleWebView(): Promise<WebView> {
  const { main, others, modules } = await program();
  const folder = `${root}${WEB_VIEW_FOLDER}`;
  mkdirSync(folder, { recursive: true });
  let page = readFileSync(`${root}ui/index.html`, "utf8");
  const style = styles();
  const icon = readFileSync(`${root}ui/icon.svg`, "utf8");
  const assets = [
    { name: "main.js", hashed: main.fileName, content: main.code },
    { name: "style.css", hashed: withHash("style.css", style), content: style },
    { name: "icon.svg", hashed: withHash("icon.svg", icon), content: icon },
  ];
  let size = 0;
  for (const { name, hashed, content } of assets) {
    page = page.replace(`"${name}"`, `"${hashed}"`);
    size += write(`${folder}/${hashed}`, content);
  }
  const rest = write(`${folder}/${others.fileName}`, others.code);
  const documents = webDocuments();
  for (const [name, content] of documents.files) write(`${folder}/${name}`, content);
  page = page.replace('"documents-version"', `"${documents.version}"`);
  size += write(`${folder}/index.html`, page);
  const all = size + rest;
  if (size > MOST || all > MOST_OF_ALL)
    throw new Error(
      `the web view has ${all} bytes with gzip, its first page ${size}: more than ${MOST_OF_ALL}, ${MOST}`,
    );
  return { size, all, modules };
}

function withHash(name: string, content: string): string {
  const hash = createHash("sha256").update(content).digest("hex").slice(0, HASH_LENGTH);
  return `${basename(name, extname(name))}-${hash}${extname(name)}`;
}

/** The style of the view: what all share, then that of parts and of pages. */
function styles(): string {
  const files = ["parts", "pages"].flatMap((folder) =>
    readdirSync(`${root}ui/${folder}`)
      .filter((name) => extname(name) === ".css")
      .sort()
      .map((name) => `${folder}/${name}`),
  );
  return ["style.css", ...files].map((name) => readFileSync(`${root}ui/${name}`, "utf8")).join("");
}

interface Program {
  /** What the page loads. */
  readonly main: OutputChunk;
  /** What that loads: the pages but the first. */
  readonly others: OutputChunk;
  readonly modules: readonly string[];
}

async function program(): Promise<Program> {
  const made = await rolldown({
    input: { main: `${root}ui/main.tsx` },
    cwd: root,
    platform: "browser",
    tsconfig: `${root}ui/tsconfig.json`,
    // Modules of the gateway whose functions the view uses import others that it does not use.
    treeshake: { moduleSideEffects: false },
    plugins: [ofNode],
    logLevel: "warn",
  });
  try {
    const { output } = await made.generate({
      format: "esm",
      hashCharacters: "hex",
      entryFileNames: `[name]-[hash:${HASH_LENGTH}].js`,
      chunkFileNames: `[name]-[hash:${HASH_LENGTH}].js`,
      comments: false,
      minify: true,
    });
    const chunks = output.filter((item) => item.type === "chunk");
    const [main, others, ...more] = chunks;
    if (main === undefined || others === undefined || more.length > 0)
      throw new Error(`the web view must be two files: ${chunks.map(({ name }) => name)}`);
    const missing = [...main.imports, ...others.imports].filter((name) => name !== main.fileName);
    if (missing.length > 0) throw new Error(`the web view needs what a browser has not: ${missing}`);
    return { main, others, modules: chunks.flatMap(({ moduleIds }) => moduleIds) };
  } finally {
    await made.close();
  }
}

/** Modules of Node.js are left to the check of what the program imports. */
const ofNode: Plugin = {
  name: "of-node",
  resolveId: (source) => (source.startsWith("node:") ? { id: source, external: true } : undefined),
};

/** Writes a file and its compressed copy, each at once, because gateways may read them. Returns the length of the copy. */
function write(path: string, content: string): number {
  const compressed = gzipSync(content, { level: 9 });
  for (const [to, bytes] of [
    [path, content],
    [`${path}.gz`, compressed],
  ] as const) {
    writeFileSync(`${to}.${process.pid}`, bytes);
    renameSync(`${to}.${process.pid}`, to);
  }
  return compressed.length;
}

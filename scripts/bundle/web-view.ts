import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { basename, extname } from "node:path";
import { gzipSync } from "node:zlib";
import { type Plugin, rolldown } from "rolldown";
import { WEB_VIEW_FOLDER } from "../../src/admin/server/web-view.ts";
import { root } from "../lib/files.ts";
import { webDocuments } from "./web-documents.ts";

/** Most bytes of the files that the page loads, with gzip: it opens in a blink, also through a port-forward. */
const MOST = 80 * 1024;

export interface WebView {
  /** Bytes of the files that the page loads, with gzip: all but documents. */
  readonly size: number;
  /** Absolute paths of all modules in it. */
  readonly modules: readonly string[];
}

/**
 * Writes the web view to `dist/ui/`: `index.html`, and what it names under names with the hash of their content, so that browsers keep
 * them forever; each also compressed. Processes that serve an earlier one go on, because its files stay.
 * @throws Error if it is too large, or needs what a browser does not have
 */
export async function bundleWebView(): Promise<WebView> {
  const { code, modules } = await program();
  const folder = `${root}${WEB_VIEW_FOLDER}`;
  mkdirSync(folder, { recursive: true });
  let page = readFileSync(`${root}ui/index.html`, "utf8");
  let size = 0;
  const assets: readonly (readonly [name: string, content: string])[] = [
    ["main.js", code],
    ["style.css", styles()],
    ["icon.svg", readFileSync(`${root}ui/icon.svg`, "utf8")],
  ];
  for (const [name, content] of assets) {
    const hash = createHash("sha256").update(content).digest("hex").slice(0, 12);
    const hashed = `${basename(name, extname(name))}-${hash}${extname(name)}`;
    page = page.replace(`"${name}"`, `"${hashed}"`);
    size += write(`${folder}/${hashed}`, content);
  }
  const documents = webDocuments();
  for (const [name, content] of documents.files) write(`${folder}/${name}`, content);
  page = page.replace('"documents-version"', `"${documents.version}"`);
  size += write(`${folder}/index.html`, page);
  if (size > MOST) throw new Error(`the web view has ${size} bytes with gzip; no more than ${MOST}`);
  return { size, modules };
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

/** The program of the page, in one file. */
async function program(): Promise<{ readonly code: string; readonly modules: readonly string[] }> {
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
      entryFileNames: "[name].js",
      chunkFileNames: "[name].js",
      comments: false,
      minify: true,
    });
    const [chunk, ...more] = output.filter((item) => item.type === "chunk");
    if (chunk === undefined || more.length > 0) throw new Error("the web view must be one file");
    if (chunk.imports.length > 0) throw new Error(`the web view needs what a browser has not: ${chunk.imports}`);
    return { code: chunk.code, modules: chunk.moduleIds };
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

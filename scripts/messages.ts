/**
 * The messages of src/gen, which buf and protoc-gen-es make of proto/. Compiling takes three seconds of CPU and 120 MiB of
 * development dependencies, so the check compares digests instead: of what goes in and of what came out.
 */
import { createHash } from "node:crypto";
import { writeFileSync } from "node:fs";
import { projectFiles, readText, root } from "./lib/files.ts";
import { run } from "./lib/process.ts";
import type { Result } from "./lib/report.ts";

const MANIFEST = "proto/generated.json";

interface Digests {
  /** Digest of the messages and of the tools that compile them. */
  readonly from: string;
  /** Digest of src/gen. */
  readonly to: string;
}

/** Compiles the messages unless they are current. Throws an Error with the compiler's output. */
export async function generateMessages(): Promise<void> {
  if (isCurrent()) return;
  const { code, output } = await run("buf", ["generate"]);
  if (code !== 0) throw new Error(`buf generate: ${output}`);
  // The project has no ESLint, so nothing reads the compiler's suppression.
  for (const path of projectFiles().filter((each) => /^src\/gen\/.*\.ts$/.test(each)))
    writeFileSync(root + path, readText(path).replace("/* eslint-disable */\n", ""));
  writeFileSync(root + MANIFEST, `${JSON.stringify(digests(), undefined, 2)}\n`);
}

export function checkMessages(): Result {
  return {
    problems: isCurrent() ? [] : ['src/gen: not what proto/ says now; run "npm run generate"'],
    summary: "messages of proto/ by digest",
  };
}

function isCurrent(): boolean {
  return readText(MANIFEST) === `${JSON.stringify(digests(), undefined, 2)}\n`;
}

function digests(): Digests {
  const files = projectFiles();
  const { devDependencies } = JSON.parse(readText("package.json")) as { devDependencies: Record<string, string> };
  const compiler = ["@bufbuild/buf", "@bufbuild/protoc-gen-es"].map((name) => `${name} ${devDependencies[name]}`);
  const sources = files.filter((path) => path.endsWith(".proto") || /^buf(\.gen)?\.yaml$/.test(path));
  return {
    from: digest([...compiler, ...sources.flatMap(withText)]),
    to: digest(files.filter((path) => /^src\/gen\/.*\.ts$/.test(path)).flatMap(withText)),
  };
}

function withText(path: string): [path: string, text: string] {
  return [path, readText(path)];
}

function digest(parts: readonly string[]): string {
  const hash = createHash("sha256");
  // Lengths keep one part from reaching into the next.
  for (const part of parts) hash.update(`${part.length} ${part}`);
  return hash.digest("hex");
}

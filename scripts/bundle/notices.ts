import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";

/** Files with a package's license. */
const LICENSE = /^(licen[cs]e|copying|notice)(\.|-|$)/i;

/**
 * Writes the licenses of all packages that have a file among `modules`: a copy of the bundles is a copy of those packages.
 * Throws for a package without one.
 */
export function writeNotices(path: string, modules: ReadonlySet<string>): void {
  const folders = new Set<string>();
  for (const id of modules) {
    const folder = /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(id)?.[0];
    if (folder !== undefined) folders.add(folder.replace(/^\0/, ""));
  }
  const sections = [...folders].sort().map(section);
  writeFileSync(path, `The programs in this folder contain the following packages.\n\n${sections.join("\n")}`);
}

function section(folder: string): string {
  const { name, version, license }: Readonly<Record<string, string>> = JSON.parse(
    readFileSync(`${folder}/package.json`, "utf8"),
  );
  const texts = readdirSync(folder).filter((file) => LICENSE.test(file));
  if (texts.length === 0 && !existsSync(`${folder}/README.md`)) throw new Error(`${folder} has no license`);
  const text = texts.map((file) => readFileSync(`${folder}/${file}`, "utf8").trim()).join("\n\n");
  return `${"=".repeat(80)}\n${name} ${version} (${license})\n\n${text}\n`;
}

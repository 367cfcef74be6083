/** Measures how readable the code is: long files, escapes from the type system, and the share of comments. */
import { projectFiles, readText } from "./lib/files.ts";
import { type Result, table } from "./lib/report.ts";
import { withoutComments } from "./lib/source.ts";

/** No source file may be longer; those above NOTABLE are listed. */
const LONGEST = 600;
const NOTABLE = 500;
/** The median file of the project may not be longer. */
const MEDIAN = 120;

interface Measure {
  readonly path: string;
  readonly lines: number;
  readonly commentLines: number;
  readonly anys: number;
  readonly assertions: number;
}

function measure(path: string): Measure {
  const text = readText(path);
  const code = withoutComments(text);
  const bare = code.replace(/"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\[\s\S]|[^`\\])*`/g, '""');
  const lines = text.split("\n");
  const codeLines = code.split("\n");
  return {
    path,
    lines: lines.length - 1,
    commentLines: lines.filter((line, index) => line.trim() !== "" && codeLines[index]?.trim() === "").length,
    // `any` may also be the name of a variable; biome tells the two apart for certain.
    anys: /\b(?:const|let) any\b/.test(bare) ? 0 : (bare.match(/[:<|&]\s*any\b|\bas any\b|\bany\[\]/g) ?? []).length,
    assertions: (bare.match(/[\w)\]]!(?=[.,;)\]}\s[])(?!\s*==)/g) ?? []).length,
  };
}

/** The value below which `share` of the sorted numbers lie. */
function quantile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}

function row(name: string, files: readonly Measure[]): (string | number)[] {
  const lines = files.map((file) => file.lines).sort((a, b) => a - b);
  const sum = (pick: (file: Measure) => number) => files.reduce((total, file) => total + pick(file), 0);
  const total = sum((file) => file.lines);
  return [
    name,
    files.length,
    total,
    quantile(lines, 0.5),
    quantile(lines, 0.9),
    lines.at(-1) ?? 0,
    sum((file) => file.anys),
    sum((file) => file.assertions),
    `${Math.round((100 * sum((file) => file.commentLines)) / Math.max(total, 1))} %`,
  ];
}

/** Tests are measured as one room; `scripts`, `bench` and `test` count beside the rooms of src/. */
function roomOf(path: string): string {
  if (path.endsWith(".test.ts")) return "(tests)";
  const [top = "", next = ""] = path.split("/");
  return top === "src" ? next.replace(/\.ts$/, "") : top;
}

export function checkSizes(): Result & { readonly table: string } {
  const all = projectFiles()
    .filter((path) => /\.tsx?$/.test(path) && !path.startsWith("src/gen/"))
    .map(measure);
  const rooms = Map.groupBy(all, (file) => roomOf(file.path));
  const code = all.filter((file) => file.path.startsWith("src/") && !file.path.endsWith(".test.ts"));
  const problems = code
    .filter((file) => file.lines > LONGEST)
    .map((file) => `${file.path}: ${file.lines} lines; no file may have more than ${LONGEST}`);
  problems.push(...all.filter((file) => file.anys > 0).map((file) => `${file.path}: ${file.anys} times \`any\``));
  problems.push(
    ...all.filter((file) => file.assertions > 0).map((file) => `${file.path}: ${file.assertions} times \`!\``),
  );
  const median = quantile(
    code.map((file) => file.lines).sort((a, b) => a - b),
    0.5,
  );
  if (median > MEDIAN) problems.push(`src: the median file has ${median} lines; no more than ${MEDIAN}`);
  const long = code.filter((file) => file.lines > NOTABLE).map((file) => `${file.path} (${file.lines})`);
  const header = ["room", "files", "lines", "median", "p90", "longest", "any", "!", "comments"];
  return {
    problems,
    summary: `${all.length} files, ${all.reduce((total, file) => total + file.lines, 0)} lines`,
    table: [
      table([
        header,
        ...[...rooms].sort(([a], [b]) => a.localeCompare(b)).map(([name, files]) => row(name, files)),
        row("src", code),
      ]),
      `longer than ${NOTABLE} lines: ${long.join(", ") || "none"}`,
    ].join("\n"),
  };
}

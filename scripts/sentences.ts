/**
 * Finds decisions by sentences: code that compares or searches the message of an error. Messages are for people and change; programs decide
 * by codes, types and fields. Where the outside has nothing but a sentence, one function at the edge turns it into a code: see `EDGES`.
 */
import { projectFiles, readText } from "./lib/files.ts";
import type { Result } from "./lib/report.ts";
import { withoutComments } from "./lib/source.ts";

const REPEATED = "a failure with the same text as before is not reported again, whatever the text says";

/** Files that may decide by a sentence, each with the reason. */
const EDGES: ReadonlyMap<string, string> = new Map([
  ["src/config/parse/yaml-errors.ts", "the YAML library has one code for a dozen mistakes"],
  ["src/kube/client.ts", "the error channel of a forwarded port carries a text only"],
  ["src/xds/server/server.ts", "grpc-js drops the codes of the system's errors"],
  ["src/cli/commands/proxy/status.ts", "whether a proxy's message lists its problems depends on the proxy"],
  ["src/controller/proxy-reports.ts", REPEATED],
  ["src/main/stream-follower.ts", REPEATED],
  ["src/xds/server/proxy-stream.ts", REPEATED],
]);

/** An expression for a sentence: a field or variable `message`, or a function that makes a text of an error. */
const SENTENCE = String.raw`(?:\b(?:message|stack)\b|\b(?:messageOf|reasonOf|withCause|asError|String)\(\w*(?:error|thrown|cause|failure)\w*\))`;
/** Comparisons that do not ask about the words: with nothing, or with the empty text. */
const ABSENT = String.raw`(?!\s*(?:""|undefined\b|null\b))`;

const DECISIONS: readonly RegExp[] = [
  new RegExp(
    String.raw`${SENTENCE}\??\.(?:includes|startsWith|endsWith|indexOf|lastIndexOf|match|matchAll|search|split)\((?!"\\n")`,
    "g",
  ),
  new RegExp(String.raw`(?<!\btypeof [\w$?.]*)${SENTENCE} [!=]={1,2}(?!=)${ABSENT}`, "g"),
  new RegExp(String.raw`(?<!""|undefined|null) [!=]={1,2} (?:[\w$?]+\.)*${SENTENCE}(?![\w.?([])`, "g"),
  new RegExp(String.raw`\.(?:test|exec)\((?:[\w$?]+\.)*${SENTENCE}\)`, "g"),
  new RegExp(String.raw`\bswitch \((?:[\w$?]+\.)*${SENTENCE}\)`, "g"),
];

/** The decisions by sentences in `sources` (texts by path), and edges that have none any more. */
export function sentencesIn(sources: ReadonlyMap<string, string>, edges: ReadonlyMap<string, string> = EDGES): Result {
  const problems: string[] = [];
  const used = new Set<string>();
  for (const [path, text] of sources) {
    const code = withoutComments(text);
    for (const decision of DECISIONS)
      for (const { 0: found, index } of code.matchAll(decision)) {
        used.add(path);
        if (edges.has(path)) continue;
        const line = code.slice(0, index).split("\n").length;
        problems.push(`${path}:${line}: decides by a sentence, \`${found.trim()}\`; give the error a code or a field`);
      }
  }
  for (const path of edges.keys())
    if (!used.has(path))
      problems.push(`${path}: decides by no sentence; remove it from the edges of scripts/sentences.ts`);
  return { problems, summary: `${sources.size} sources, ${edges.size} edges` };
}

export function checkSentences(): Result {
  const paths = projectFiles().filter(
    (path) => /^src\/.*\.tsx?$/.test(path) && !/\.test\.ts$|\/testing\/|^src\/gen\//.test(path),
  );
  return sentencesIn(new Map(paths.map((path) => [path, readText(path)])));
}

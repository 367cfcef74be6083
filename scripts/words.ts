/** Finds what must not be in the project's files: paths of a developer's machine, addresses of package registries, leftovers. */
import { projectFiles, readText } from "./lib/files.ts";
import type { Result } from "./lib/report.ts";

interface Rule {
  readonly pattern: RegExp;
  readonly why: string;
  /** Files that the rule does not concern. */
  readonly except?: RegExp;
}

// Letters in brackets keep this file from finding itself.
const RULES: readonly Rule[] = [
  {
    pattern: /(?<![\w.$}-])\/(?:[w]ork|[r]oot|[h]ome\/\w+|[U]sers\/\w+)\//,
    why: "a path of one machine; make it relative to the checkout",
  },
  {
    pattern: /\b(?:[r]egistry\.npmjs|[r]egistry\.yarnpkg|[p]ypi|[c]rates\.io|proxy\.[g]olang)\b/,
    why: "the address of a package registry; its client knows it",
    except: /^package-lock\.json$/,
  },
  {
    pattern: /\b[T]ODO\b|\b[F]IXME\b|\b[X]XX\b|\b[H]ACK\b/,
    why: "a leftover; do it, or say in the docs that it is missing",
  },
  {
    pattern: /\b(?:it|test|describe)\.(?:[o]nly|[t]odo|[s]kip)\b|\b[o]nly: true\b/,
    why: "a test that keeps others, or itself, from running",
  },
  {
    pattern: /\bconsole\.(?:[l]og|[e]rror|[w]arn|[d]ebug|[i]nfo)\(/,
    why: "use the log of src/base, or process.stdout in a command",
    except: /^(?!src\/)/,
  },
  { pattern: /@ts-(?:[i]gnore|[n]ocheck|[e]xpect-error)/, why: "a way around the type system" },
  {
    pattern: /[b]iome-ignore(?! \S+: \S)(?!-\w+ \S+: \S)/,
    why: "a suppression without a reason",
  },
];

const TEXT = /\.(?:ts|js|json|ya?ml|md|sh|txt|csv)$|^bin\/|^\.ci\/|(?:^|\/)[A-Z]+$/;

export function checkWords(): Result {
  const files = projectFiles().filter((path) => TEXT.test(path));
  const problems = files.flatMap((path) => {
    const rules = RULES.filter((rule) => rule.except?.test(path) !== true);
    return readText(path)
      .split("\n")
      .flatMap((line, index) =>
        rules
          .filter((rule) => rule.pattern.test(line))
          .map((rule) => `${path}:${index + 1}: ${rule.pattern.exec(line)?.[0]}: ${rule.why}`),
      );
  });
  return { problems, summary: `${files.length} files` };
}

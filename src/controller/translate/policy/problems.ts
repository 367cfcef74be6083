import { formatPath, type Path } from "../../../base/paths.ts";
import { isInvalidating, type Problem, type ProblemCause, type Report } from "../../../translation/problems/problem.ts";
import { problemText } from "../../crd/parse-spec.ts";
import { NO_BACKEND } from "../../crd/references.ts";
import { type LintFinding, lintFindings } from "../model/conditions.ts";

/**
 * Problems of one object. Code decides by their values (`invalidating`, `causes`); `errors` and `warnings` are the same problems for
 * statuses: each once, as a line of text with the path of the field.
 */
export class Problems {
  readonly errors: string[] = [];
  readonly warnings: string[] = [];
  /** What is valid and most likely not intended, by codes of `docs/lints.md`. */
  readonly findings: LintFinding[] = [];
  readonly #references = new Set<string>();
  readonly causes = new Set<ProblemCause["code"]>();
  #invalidating = 0;

  /** The number of reported problems that make a value invalid, including repeated ones. */
  get invalidating(): number {
    return this.#invalidating;
  }

  /** Notes and other advice are for authors of files, and are left out. */
  readonly report: Report = (at, problem, key) => {
    const path = inSpec(at);
    if (problem.lint !== undefined) {
      this.findings.push(...lintFindings(path, problem.lint));
      return;
    }
    if (problem.note === true || (problem.advice === true && problem.cause === undefined)) return;
    if (isPlaceholder(problem)) return;
    if (problem.cause !== undefined) this.causes.add(problem.cause.code);
    if (isInvalidating(problem)) this.#invalidating++;
    const last = path.at(-1);
    if (isReference(last)) this.#references.add(formatPath(path.slice(0, -1)));
    else if (this.#follows(path)) return;
    const list = problem.warning === true ? this.warnings : this.errors;
    const text = problemText(path, inCluster(problem), key);
    if (!list.includes(text)) list.push(text);
  };

  /** Whether it is about what a reference stands for that has been reported already. */
  #follows(path: Path): boolean {
    if (this.#references.size === 0) return false;
    const cut = path.findLastIndex((part) => part === "backend" || part === "service");
    return [path, ...(cut < 0 ? [] : [path.slice(0, cut)])].some((each) => this.#references.has(formatPath(each)));
  }
}

function isReference(part: PropertyKey | undefined): boolean {
  return part === "backendRef" || part === "secretKeyRef" || part === "configMapKeyRef";
}

/** It concerns the replacement for a backendRef that was already reported. */
function isPlaceholder({ cause }: Problem): boolean {
  return cause?.code === "unknownDestination" && cause.kind === "backend" && cause.name === NO_BACKEND.backend;
}

/** Translation speaks of files: the same in the words of a cluster. */
function inCluster(problem: Problem): Problem {
  switch (problem.cause?.code) {
    case "noDestination":
      return { ...problem, message: "one of host, backendRef is required" };
    case "unknownDestination":
      return { message: "names an entry of a configuration file", expected: "backendRef" };
    default:
      return problem;
  }
}

/** Translation of `frontend` has the path of the configuration file. */
function inSpec(path: Path): Path {
  return path[0] === "frontendPolicies" ? ["spec", "frontend", ...path.slice(1)] : path;
}

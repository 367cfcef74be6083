import type { Problem, Report } from "../../../config/parse/document.ts";
import { formatPath, type Path } from "../../../config/parse/paths.ts";
import { problemText } from "../../crd/parse-spec.ts";

/** About what stands for a backendRef that has been reported (`NO_BACKEND` of `references.ts`). */
const MISSING_BACKEND = "unknown backend reference /";

/** Problems of one object, each once, as lines of text with the path of the field. */
export class Problems {
  readonly errors: string[] = [];
  readonly warnings: string[] = [];
  readonly #references = new Set<string>();

  /** Notes and advice are for authors of files, and are left out. */
  readonly report: Report = (at, problem, key) => {
    const path = inSpec(at);
    if (problem.note === true || problem.advice === true || problem.message === MISSING_BACKEND) return;
    const last = path.at(-1);
    if (isReference(last)) this.#references.add(formatPath(path.slice(0, -1)));
    else if (this.#follows(path)) return;
    const list = problem.warning === true ? this.warnings : this.errors;
    const text = problemText(path, inCluster(path, problem), key);
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

/** Translation speaks of files: the same in the words of a cluster. */
function inCluster(path: Path, problem: Problem): Problem {
  const { message } = problem;
  if (message === "one of host, service, backend is required")
    return { ...problem, message: "one of host, backendRef is required" };
  if (
    /^unknown (service|backend) reference/.test(message) &&
    path.some((part) => part === "service" || part === "backend")
  )
    return { message: "names an entry of a configuration file", expected: "backendRef" };
  return problem;
}

/** Translation of `frontend` has the path of the configuration file. */
function inSpec(path: Path): Path {
  return path[0] === "frontendPolicies" ? ["spec", "frontend", ...path.slice(1)] : path;
}

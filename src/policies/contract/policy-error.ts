import { messageOf } from "../../base/errors.ts";

/** A place in a configuration: names of fields and positions in lists. */
export type ConfigPath = readonly (string | number)[];

/** One problem of a policy's configuration that its schema cannot see. */
export interface PolicyProblem {
  readonly path: ConfigPath;
  /** The key of the map at `path` that is wrong, where it is the key and not its value. */
  readonly key?: string;
  /** What is wrong and how to correct it, without the path. */
  readonly reason: string;
}

/**
 * A configuration that passes its schema and is still invalid, such as a list with a duplicate key. The message is the first problem
 * with its path; the translation reports all of them with file, line and column.
 */
export class PolicyError extends Error {
  readonly problems: readonly [PolicyProblem, ...PolicyProblem[]];

  constructor(problems: readonly [PolicyProblem, ...PolicyProblem[]], options?: ErrorOptions) {
    const [{ path, reason }] = problems;
    const place = path.join(".");
    super(place === "" ? reason : `${place}: ${reason}`, options);
    this.problems = problems;
  }

  /** An error with one problem. `cause` goes to logs. */
  static at(path: ConfigPath, reason: string, cause?: unknown): PolicyError {
    return new PolicyError([{ path, reason }], { cause });
  }
}

/** Runs `work` on the value at `path`, and prefixes the paths of its errors. Errors of other types become a PolicyError at `path`. */
export function within<Result>(path: ConfigPath, work: () => Result): Result {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof PolicyError)) throw PolicyError.at(path, messageOf(error), error);
    const [first, ...others] = error.problems;
    const move = (problem: PolicyProblem): PolicyProblem => ({ ...problem, path: [...path, ...problem.path] });
    throw new PolicyError([move(first), ...others.map(move)], { cause: error.cause });
  }
}

import { messageOf } from "../base/errors.ts";

/** A place in a configuration: names of fields and positions in lists. */
export type ConfigPath = readonly (string | number)[];

/** One thing that a configuration cannot have. */
export interface PolicyProblem {
  readonly path: ConfigPath;
  /** The key of the map at `path` that is wrong, where it is the key and not its value. */
  readonly key?: string;
  /** Without the path, as a message that stands at it: what is wrong and how to mend it. */
  readonly reason: string;
}

/** A configuration that passes its schema and still cannot work. The message names the first problem with its path. */
export class PolicyError extends Error {
  readonly problems: readonly [PolicyProblem, ...PolicyProblem[]];

  constructor(problems: readonly [PolicyProblem, ...PolicyProblem[]], options?: ErrorOptions) {
    const [{ path, reason }] = problems;
    const place = path.join(".");
    super(place === "" ? reason : `${place}: ${reason}`, options);
    this.problems = problems;
  }

  static at(path: ConfigPath, reason: string, cause?: unknown): PolicyError {
    return new PolicyError([{ path, reason }], { cause });
  }
}

/** Runs `work`, whose errors are about what stands at `path`: their paths begin there. */
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

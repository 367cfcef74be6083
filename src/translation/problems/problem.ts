/** What is wrong with something that a user wrote, before it is known where that is: in a file, or in an object of Kubernetes. */
import type { Path } from "../../base/paths.ts";
import type { Diagnostic } from "./diagnostics.ts";
import type { Finding } from "./lint-table.ts";

/** Values of fields with such names are never quoted in an error. */
const SECRET_NAME = /key|secret|token|passw|credential|authorization|cookie|body/i;

/**
 * The cause of a problem, for code to decide by; messages are for people. All of these concern something that a value refers to: the value
 * is kept, and fails when it needs that. Any other problem makes the value that contains it invalid.
 */
export type ProblemCause =
  /** None of `host`, `service` and `backend`. */
  | { readonly code: "noDestination" }
  /** The service or backend is not defined. */
  | { readonly code: "unknownDestination"; readonly kind: "service" | "backend"; readonly name: string }
  /** The host or port is not valid, or the backend has no fixed address. */
  | { readonly code: "invalidDestination" }
  /** The host may not be called, because it is inside the cluster. */
  | { readonly code: "clusterHost" }
  /** A document could not be fetched. */
  | { readonly code: "missingDocument" };

/** A place that explains a finding, such as the route that shadows another. */
interface Related {
  readonly path: Path;
  /** What it is, such as `wins instead`. */
  readonly message: string;
}

/** A diagnostic without its place. */
export type Problem = Pick<Diagnostic, "message" | "remedy" | "expected" | "suggestion" | "invalidCertificate"> & {
  /** What a lint has found. */
  readonly lint?: Finding;
  readonly cause?: ProblemCause;
  readonly warning?: boolean;
  readonly note?: boolean;
  /** A warning about valid settings. Dropped if there are errors, since a configuration without its invalid parts may look odd. */
  readonly advice?: boolean;
  /** The field whose absence is the problem: no problem if it was left out because it is invalid, which is reported by itself. */
  readonly absent?: Path;
  /** Other places that explain a finding. */
  readonly related?: readonly Related[];
};

/** Reports a problem with the value at `path`; `key` points at a key of it instead. */
export type Report = (path: Path, problem: Problem, key?: string) => void;

/** Whether a problem makes the value that contains it invalid. */
export function isInvalidating({ warning = false, note = false, cause }: Problem): boolean {
  return !warning && !note && cause === undefined;
}

/** Names of limits, such as `maxTokens` and `minBodyRate`. */
const LIMIT = /^m(?:ax|in)[A-Z]/;

/** Fields of the policy `apiKey` that hold no secret. */
const OF_API_KEY: ReadonlySet<PropertyKey | undefined> = new Set(["mode", "location"]);

/** Whether the value at a path may be a secret. */
export function isSecret(path: Path): boolean {
  return path.some(
    (part, i) =>
      typeof part === "string" &&
      SECRET_NAME.test(part) &&
      !LIMIT.test(part) &&
      !(part === "apiKey" && OF_API_KEY.has(path[i + 1])),
  );
}

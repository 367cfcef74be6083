import { REDACTED } from "../../trace/redaction.ts";
import type { Transformation, Transformations } from "../policy-set.ts";
import { shownValues } from "../shared/header-edits.ts";

/** The configuration without the expressions of headers that hold secrets: they may hold the secret itself. */
export function redact(config: Transformations, hidden: ReadonlySet<string>): Transformations {
  const { request, response } = config;
  return {
    ...config,
    ...(request !== undefined && { request: shownSide(request, hidden) }),
    ...(response !== undefined && { response: shownSide(response, hidden) }),
  };
}

function shownSide(side: Transformation, hidden: ReadonlySet<string>): Transformation {
  return {
    ...side,
    ...(side.replace !== undefined && namesKey(side.replace, hidden) && { replace: REDACTED }),
    ...(side.add !== undefined && { add: shownValues(side.add, hidden) }),
    ...(side.set !== undefined && { set: shownValues(side.set, hidden) }),
  };
}

/** Whether a map in the expression has one of the names for a key, as far as its text tells. */
function namesKey(text: string, names: ReadonlySet<string>): boolean {
  return [...text.matchAll(/(["'])([^"'\\]+)\1\s*:/g)].some(([, , key = ""]) => names.has(key.toLowerCase()));
}

import { Environment } from "@marcbachmann/cel-js";
import { matchesPattern } from "./patterns.ts";
import { RequestVariable } from "./request-view.ts";
import { EXCHANGE_VARIABLES, REQUEST_FIELDS, type Scope, VARIABLES } from "./variables.ts";

/**
 * The name behind `matches`. The library's own one runs on backtracking expressions and cannot be replaced, so the parsed
 * calls are renamed to this one.
 */
export const MATCHES = "linearMatches";

const SYNCHRONOUS = { async: false } as const;

const base = new Environment({
  // CEL allows mixed lists and maps; their elements are dyn.
  homogeneousAggregateLiterals: false,
  // Ample for what people write; together with the bound on nested loops they bound the time of one evaluation.
  limits: { maxAstNodes: 1000, maxDepth: 50, maxListElements: 256, maxMapEntries: 64, maxCallArguments: 16 },
})
  .registerType("Request", { ctor: RequestVariable, fields: { ...REQUEST_FIELDS } })
  .registerFunction(`string.${MATCHES}(string): bool`, matchesPattern, SYNCHRONOUS)
  .registerFunction("matches(string, string): bool", matchesPattern, SYNCHRONOUS);

function environment(scope: Scope): Environment {
  const environment = base.clone();
  for (const name of VARIABLES[scope]) {
    const schema = EXCHANGE_VARIABLES[name];
    if (name === "request") environment.registerVariable("request", "Request");
    else if (schema === undefined || name === "source") environment.registerVariable(name, "dyn");
    else environment.registerVariable(name, { schema });
  }
  return environment;
}

export const ENVIRONMENTS: Readonly<Record<Scope, Environment>> = {
  arrival: environment("arrival"),
  network: environment("network"),
  request: environment("request"),
  response: environment("response"),
};

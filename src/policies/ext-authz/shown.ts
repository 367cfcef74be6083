import type { Conditional, ExtAuthz } from "../../ir/policies.ts";
import { REDACTED } from "../../trace/redaction.ts";
import { isConditional } from "../conditional/index.ts";

/** The configuration without expressions of headers that hold secrets: they may hold the secret itself. */
export function shown(
  config: ExtAuthz | Conditional<ExtAuthz>,
  hidden: ReadonlySet<string>,
): ExtAuthz | Conditional<ExtAuthz> {
  if (isConditional(config))
    return { conditional: (config as Conditional<ExtAuthz>).conditional.map((entry) => shownOne(entry, hidden)) };
  return shownOne(config, hidden);
}

function shownOne<Config extends ExtAuthz>(config: Config, hidden: ReadonlySet<string>): Config {
  if ("grpc" in config.protocol) return config;
  const { http } = config.protocol;
  const addRequestHeaders = Object.fromEntries(
    Object.entries(http.addRequestHeaders).map(([name, text]) => [
      name,
      hidden.has(name.toLowerCase()) ? REDACTED : text,
    ]),
  );
  return { ...config, protocol: { http: { ...http, addRequestHeaders } } };
}

import type { ExtAuthz } from "../../ir/policies.ts";
import { REDACTED } from "../../trace/redaction.ts";

/** The configuration without expressions of headers that hold secrets: they may hold the secret itself. */
export function shown(config: ExtAuthz, hidden: ReadonlySet<string>): ExtAuthz {
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

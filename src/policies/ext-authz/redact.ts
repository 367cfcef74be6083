import { redactCalling } from "../calls/redact.ts";
import type { ExtAuthz, ExtAuthzHttp, NetworkExtAuthz } from "../policy-set.ts";
import { shownValues } from "../shared/header-edits.ts";

/** The configuration without expressions of headers that hold secrets: they may hold the secret itself. */
export function redact(config: ExtAuthz, hidden: ReadonlySet<string>): unknown {
  const redacted = redactCalling(config, hidden);
  if ("grpc" in config.protocol) return redacted;
  return { ...redacted, protocol: { http: redactHttp(config.protocol.http, hidden) } };
}

/** The same for connections. */
export function redactNetwork(config: NetworkExtAuthz, hidden: ReadonlySet<string>): unknown {
  const redacted = redactCalling(config, hidden);
  if ("grpc" in config.protocol) return redacted;
  return { ...redacted, protocol: { http: redactHttp(config.protocol.http, hidden) } };
}

function redactHttp<Http extends Pick<ExtAuthzHttp, "addRequestHeaders">>(
  http: Http,
  hidden: ReadonlySet<string>,
): Http {
  return { ...http, addRequestHeaders: shownValues(http.addRequestHeaders, hidden) };
}

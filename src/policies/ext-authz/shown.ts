import type { ExtAuthz, ExtAuthzHttp, NetworkExtAuthz } from "../../ir/policies.ts";
import { shownCalling } from "../calls/shown.ts";
import { shownValues } from "../shared/header-edits.ts";

/** The configuration without expressions of headers that hold secrets: they may hold the secret itself. */
export function shown(config: ExtAuthz, hidden: ReadonlySet<string>): unknown {
  const shown = shownCalling(config, hidden);
  if ("grpc" in config.protocol) return shown;
  return { ...shown, protocol: { http: shownHttp(config.protocol.http, hidden) } };
}

/** The same for connections. */
export function shownNetwork(config: NetworkExtAuthz, hidden: ReadonlySet<string>): unknown {
  const shown = shownCalling(config, hidden);
  if ("grpc" in config.protocol) return shown;
  return { ...shown, protocol: { http: shownHttp(config.protocol.http, hidden) } };
}

function shownHttp<Http extends Pick<ExtAuthzHttp, "addRequestHeaders">>(
  http: Http,
  hidden: ReadonlySet<string>,
): Http {
  return { ...http, addRequestHeaders: shownValues(http.addRequestHeaders, hidden) };
}

import type { Activation } from "../cel/index.ts";
import { type Connected, Source } from "../http/source.ts";
import type { Services } from "./services.ts";

/** What expressions can read of a connection. */
export function connectionVariables(
  connection: Connected,
  serverName: string,
  { env, workloads }: Pick<Services, "env" | "workloads">,
): Activation {
  const destination = { address: connection.localAddress, port: connection.localPort, hostname: serverName };
  return { source: new Source(connection, workloads), destination, env };
}

/** What expressions read of a connection without a request. */
import { SECRET_PARAMETERS } from "../../base/redaction.ts";
import { type Activation, Budget } from "../../cel/index.ts";
import { type Connected, Source } from "../../http/source.ts";
import { ShownVariables } from "../../telemetry/shown-variables.ts";
import { RequestSecrets } from "../../trace/secrets.ts";
import type { Services } from "../services/services.ts";

/** What expressions can read of a connection. */
export function connectionVariables(
  connection: Connected,
  serverName: string,
  { env, workloads, expressions }: Pick<Services, "env" | "workloads" | "expressions">,
): Activation {
  const destination = { address: connection.localAddress, port: connection.localPort, hostname: serverName };
  const budget = new Budget(expressions.limits.perRequest);
  return { source: new Source(connection, workloads), destination, env, budget };
}

/** The variables of a connection as telemetry shows them. */
export function shownOfConnection(variables: Activation, services: Pick<Services, "sensitive">): ShownVariables {
  return new ShownVariables(variables, secretsOfConnection(services));
}

/** What telemetry redacts of a connection. */
export function secretsOfConnection({ sensitive }: Pick<Services, "sensitive">): RequestSecrets {
  return new RequestSecrets(false, sensitive, SECRET_PARAMETERS);
}

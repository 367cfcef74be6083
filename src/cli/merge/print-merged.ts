import type { AdminAnswers } from "../../admin/plane/answers.ts";
import type { Merged } from "../../admin/plane/replicas.ts";
import { print } from "../dump/dump.ts";
import type { ProxyAdmin } from "../proxy/admin.ts";
import type { Proxies } from "../proxy/proxies.ts";
import type { Context } from "../runner/context.ts";
import { askReplicas } from "./ask-replicas.ts";
import { MERGES, type MergedEndpoint } from "./merges.ts";

interface MergedQuestion<Endpoint extends MergedEndpoint> {
  readonly endpoint: Endpoint;
  /** What the merged answer is to fit. Default: nothing. */
  readonly query?: URLSearchParams;
  readonly ask: (proxy: ProxyAdmin) => Promise<AdminAnswers[Endpoint]>;
  /** One of those of `DUMP_OUTPUT_OPTION`. */
  readonly output: string;
  readonly table: (answer: AdminAnswers[Endpoint]) => string;
}

/**
 * Asks all proxies, and prints their answers as one; those of several replicas with the state of each in JSON and YAML (`Merged`).
 * @throws CliError also after printing, if a proxy has not answered: what is printed is not the whole then
 */
export async function printMerged<Endpoint extends MergedEndpoint>(
  proxies: Proxies,
  context: Context,
  { endpoint, query = new URLSearchParams(), ask, output, table }: MergedQuestion<Endpoint>,
): Promise<void> {
  const { answers, replicas, failure } = await askReplicas(proxies, context, ask);
  const answer = MERGES[endpoint].merge(answers, query);
  const whole = replicas.length > 1 ? ({ ...answer, replicas } satisfies Merged) : answer;
  await print(whole, output, context, () => table(answer));
  if (failure !== undefined) throw failure;
}

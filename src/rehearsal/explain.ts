/** Explains requests by rehearsing them. */
import type { CompiledBind } from "../proxy/compile/compiled.ts";
import type { Ports } from "../proxy/data-plane.ts";
import { readAssumptions } from "./assumptions.ts";
import { type ExplainedOutcome, explained } from "./explanation.ts";
import { BadFacts, factsOfRequest } from "./facts.ts";
import type { Question } from "./question.ts";
import type { Rehearsal } from "./rehearsal.ts";

/** Every outcome of the question. `ports`: where binds listen, if not where the configuration says. Rejects with BadFacts. */
export async function explain(
  rehearsal: Rehearsal,
  { request, assume = {} }: Question,
  ports: Ports = {},
): Promise<readonly ExplainedOutcome[]> {
  const assumed = readAssumptions(assume);
  const facts = factsOfRequest(request);
  const binds = rehearsal.binds.map((bind) => ({ ...bind, port: ports[bind.key] ?? bind.port }));
  const outcomes = await rehearsal.outcomes(facts, bindOf(binds, facts.url), assumed);
  return outcomes.map(explained);
}

/** The bind that a client would reach with the URL: by its port or, without one, the only bind for its scheme. */
function bindOf(binds: readonly CompiledBind[], url: URL): CompiledBind {
  const isTls = url.protocol === "https:";
  const fitting = binds.filter(({ protocol }) => protocol === (isTls ? "tls" : "http"));
  const port = Number(url.port || (isTls ? 443 : 80));
  const named = fitting.find((bind) => bind.port === port);
  const [only, ...others] = fitting;
  if (named !== undefined) return named;
  if (url.port === "" && only !== undefined && others.length === 0) return only;
  const ports = fitting.map((bind) => `${url.protocol}//${url.hostname}:${bind.port}`);
  throw new BadFacts(
    `the configuration has no bind for ${url.protocol.slice(0, -1)} on port ${port}`,
    ports.length === 0
      ? `none of its binds serves ${url.protocol.slice(0, -1)}`
      : `write ${ports.slice(0, 5).join(" or ")}`,
  );
}

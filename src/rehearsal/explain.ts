/** Explains requests by rehearsing them. */
import type { Ports } from "../proxy/data-plane.ts";
import { readAssumptions } from "./assumptions.ts";
import { type ExplainedOutcome, explained } from "./explanation.ts";
import { factsOfRequest } from "./facts.ts";
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
  const outcomes = await rehearsal.outcomes(facts, rehearsal.bindFor(facts.url, ports), assumed);
  return outcomes.map(explained);
}

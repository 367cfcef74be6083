/** Explains requests by rehearsing them. */
import type { Ports } from "../proxy/data-plane.ts";
import type { EndpointStats } from "../upstream/endpoints/endpoints.ts";
import { readAssumptions } from "./assumptions.ts";
import { type Explained, explained } from "./explanation.ts";
import { factsOfRequest } from "./facts.ts";
import type { Question } from "./question.ts";
import type { Rehearsal } from "./rehearsal.ts";
import { endpointsOf } from "./tree.ts";

/** What only a running gateway knows. */
export interface Live {
  /** Where binds listen, if not where the configuration says. */
  readonly ports: Ports;
  /** The state of the endpoints with these keys, as far as there is one. */
  endpoints(keys: readonly string[]): Promise<readonly EndpointStats[]>;
}

const NOT_RUNNING: Live = { ports: {}, endpoints: async () => [] };

/** Every outcome of the question. Rejects with BadFacts for one that cannot be rehearsed. */
export async function explain(
  rehearsal: Rehearsal,
  { request, assume = {} }: Question,
  { ports, endpoints } = NOT_RUNNING,
): Promise<Explained> {
  const assumed = readAssumptions(assume);
  const facts = factsOfRequest(request);
  const { outcomes, omitted } = await rehearsal.outcomes(facts, rehearsal.bindFor(facts.url, ports), assumed);
  const keys = new Set(outcomes.flatMap(endpointsOf));
  const stats = keys.size === 0 ? [] : await endpoints([...keys]);
  const live = new Map(stats.map((each) => [each.key, each]));
  return { outcomes: outcomes.map((outcome) => explained(outcome, live)), ...(omitted > 0 && { omitted }) };
}

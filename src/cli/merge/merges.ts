/** How the answers of replicas become one, for each endpoint of the admin server that the web view uses. */
import type { AdminAnswers } from "../../admin/plane/answers.ts";
import { fieldsOf, jsonOf } from "../../base/fields.ts";
import { mergeImpacts } from "../../impact/merge.ts";
import { mergeBackend, mergeBackends, mergeProbes } from "./backends.ts";
import { newestExplanation } from "./explanation.ts";
import { mergeLogLevels } from "./log-levels.ts";
import { mergeOverviews, mergeStatus } from "./overview.ts";
import { mergeRecords } from "./records.ts";
import type { OfReplica } from "./replica.ts";
import { mergeRoute, mergeRoutes, routesQuery } from "./routes.ts";

interface Merge<Answer> {
  /** The query that each replica gets in place of this one. Default: the same. */
  readonly ask?: (query: URLSearchParams) => URLSearchParams;
  /** Whether one replica can answer for all a question with this body. Default: all are asked. */
  readonly asksOne?: (body: string) => boolean;
  /** Of at least one answer; those of the replicas are in the order of the names of their pods. */
  readonly merge: (answers: readonly OfReplica<Answer>[], query: URLSearchParams) => Answer;
}

/** As `/requests` without a limit. */
const RECORDS = 50;

/** All but the token, which each server has for its own pages. */
export type MergedEndpoint = Exclude<keyof AdminAnswers, "/page-token">;

export const MERGES: { readonly [Endpoint in MergedEndpoint]: Merge<AdminAnswers[Endpoint]> } = {
  "/backends": { merge: mergeBackends },
  "/backends/": { merge: mergeBackend },
  // Replicas have their configuration from the controller, so none has a file to compare.
  "/config/difference": { asksOne: () => true, merge: firstOf },
  // Replicas with one configuration have the same parts and the same names.
  "/config/parts": { asksOne: () => true, merge: firstOf },
  "/config/status": { merge: (answers) => mergeStatus(answersOf(answers)) },
  "/explain": {
    asksOne: isWritten,
    merge: (answers) => newestExplanation(answers) ?? firstOf(answers),
  },
  "/expression": { asksOne: isWritten, merge: firstOf },
  "/expression/names": { asksOne: () => true, merge: firstOf },
  "/impact": { merge: (answers) => mergeImpacts(answersOf(answers)) },
  "/logging": { merge: (answers) => mergeLogLevels(answersOf(answers)) },
  "/overview": { merge: mergeOverviews },
  "/probe/": { merge: (answers) => mergeProbes(answersOf(answers)) },
  "/requests": { merge: (answers, query) => mergeRecords(answers, Number(query.get("limit") ?? RECORDS)) },
  "/requests/": { merge: (answers) => mergeRecords(answers) },
  "/routes": { ask: routesQuery, merge: (answers, query) => mergeRoutes(answersOf(answers), query) },
  "/routes/": { merge: (answers) => mergeRoute(answersOf(answers)) },
};

/** Whether the question has all that it is about; a request that is over is known to one of the replicas. */
function isWritten(body: string): boolean {
  return !("id" in fieldsOf(jsonOf(body)));
}

function answersOf<Answer>(answers: readonly OfReplica<Answer>[]): Answer[] {
  return answers.map(({ answer }) => answer);
}

function firstOf<Answer>(answers: readonly OfReplica<Answer>[]): Answer {
  const [first] = answers;
  if (first === undefined) throw new RangeError("no replica has answered");
  return first.answer;
}

/** How the answers of replicas become one, for each endpoint of the admin server that the web view uses. */
import type { AdminAnswers } from "../../admin/plane/answers.ts";
import { mergeImpacts } from "../../impact/merge.ts";
import { mergeBackend, mergeBackends, mergeProbes } from "./backends.ts";
import { mergeCertificates } from "./certificates.ts";
import { newestExplanation } from "./explanation.ts";
import { mergeLogLevels } from "./log-levels.ts";
import { mergeOverviews, mergeStatus } from "./overview.ts";
import { mergeRecords } from "./records.ts";
import type { OfReplica } from "./replica.ts";
import { mergeRoute, mergeRoutes, routesQuery } from "./routes.ts";

interface Merge<Answer> {
  /** The query that each replica gets in place of this one. Default: the same. */
  readonly ask?: (query: URLSearchParams) => URLSearchParams;
  /**
   * Which replicas are asked. `one`: a single replica, because all answer alike. `knowing`: all, if the body names a request that is over, since only
   * some have its record; else a single one. Default: all.
   */
  readonly asks?: "one" | "knowing";
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
  "/certificates": { merge: (answers) => mergeCertificates(answersOf(answers)) },
  // Replicas have their configuration from the controller, so none has a file to compare.
  "/config/difference": { asks: "one", merge: firstOf },
  // Replicas with one configuration have the same parts and the same names.
  "/config/parts": { asks: "one", merge: firstOf },
  "/config/status": { merge: (answers) => mergeStatus(answersOf(answers)) },
  "/explain": {
    asks: "knowing",
    merge: (answers) => newestExplanation(answers) ?? firstOf(answers),
  },
  "/export": { asks: "knowing", merge: firstOf },
  "/expression": { asks: "knowing", merge: firstOf },
  "/expression/names": { asks: "one", merge: firstOf },
  "/impact": { merge: (answers) => mergeImpacts(answersOf(answers)) },
  "/logging": { merge: (answers) => mergeLogLevels(answersOf(answers)) },
  "/overview": { merge: mergeOverviews },
  "/probe/": { merge: mergeProbes },
  "/requests": { merge: (answers, query) => mergeRecords(answers, Number(query.get("limit") ?? RECORDS)) },
  "/requests/": { merge: (answers) => mergeRecords(answers) },
  "/routes": { ask: routesQuery, merge: (answers, query) => mergeRoutes(answersOf(answers), query) },
  "/routes/": { merge: (answers) => mergeRoute(answersOf(answers)) },
};

function answersOf<Answer>(answers: readonly OfReplica<Answer>[]): Answer[] {
  return answers.map(({ answer }) => answer);
}

function firstOf<Answer>(answers: readonly OfReplica<Answer>[]): Answer {
  const [first] = answers;
  if (first === undefined) throw new RangeError("no replica has answered");
  return first.answer;
}

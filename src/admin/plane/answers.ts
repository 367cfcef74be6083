/** What the admin server answers, as types that it shares with its clients: `tgctl` and the web view. */
import { isObject } from "../../base/fields.ts";
import type { GatewayImpact } from "../../impact/merge.ts";
import type { RecordAnswer } from "../../recorder/records.ts";
import type { Explanation } from "../../rehearsal/explanation.ts";
import type { BackendsAnswer, BackendView } from "./backends.ts";
import type { ConfigStatus } from "./config-status.ts";

/** The JSON of an endpoint with status 200, by the path of its route. */
export interface AdminAnswers {
  readonly "/backends": BackendsAnswer;
  readonly "/backends/": BackendView;
  readonly "/config/status": ConfigStatus;
  readonly "/explain": Explanation;
  readonly "/impact": GatewayImpact;
  readonly "/requests": RecordAnswer;
  /** With status 404, it says how far back the request would have been found. */
  readonly "/requests/": RecordAnswer;
}

/** The query of `/requests`. */
export interface RequestsQuery {
  /** CEL over a record. */
  readonly where?: string | undefined;
  /** A duration such as `5m`: only requests that ended within it. */
  readonly last?: string | undefined;
  /** `<namespace>/<name>` or only the name. */
  readonly route?: string | undefined;
  /** Only what failed or was rejected, or only what was slow; with both, either kind. */
  readonly errors?: boolean;
  readonly slow?: boolean;
  /** How many at most, the newest first. */
  readonly limit?: number;
}

/** What tells an answer from that of another program: versions may add fields, so no more than this is looked at. */
const MARKS: { readonly [Endpoint in keyof AdminAnswers]: (answer: Readonly<Record<string, unknown>>) => boolean } = {
  "/backends": ({ backends }) => isObject(backends),
  "/backends/": ({ endpoints }) => isObject(endpoints),
  "/config/status": ({ generation, synchronized }) => generation !== undefined && synchronized !== undefined,
  "/explain": ({ outcomes }) => Array.isArray(outcomes),
  "/impact": ({ classes, changes }) => isObject(classes) && Array.isArray(changes),
  "/requests": ({ records }) => Array.isArray(records),
  "/requests/": ({ records }) => Array.isArray(records),
};

/** Whether a value that was received is an answer of this endpoint. */
export function isAnswer<Endpoint extends keyof AdminAnswers>(
  endpoint: Endpoint,
  value: unknown,
): value is AdminAnswers[Endpoint] {
  return isObject(value) && MARKS[endpoint](value);
}

/** The parameters of a query, without those that are absent, empty or false. */
export function queryOf(words: object): URLSearchParams {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(words))
    if (value !== undefined && value !== "" && value !== false) query.set(name, String(value));
  return query;
}

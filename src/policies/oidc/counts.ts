import type { Count } from "../../telemetry/counter-memory.ts";
import type { Metrics } from "../../telemetry/metrics.ts";
import type { Renewal } from "../shared-sessions/shared-sessions.ts";
import type { LoginProblem } from "./failure.ts";

/** Where the counters of a thread are. */
type OidcCounters = Pick<Metrics, "count">;

/** Counts what becomes of logins and sessions with one provider. The values of labels are from the configuration and from types only. */
export class OidcCounts {
  readonly #counters: OidcCounters | undefined;
  readonly #issuer: string;

  /** `counters`: undefined where no requests are served. */
  constructor(counters: OidcCounters | undefined, issuer: string) {
    this.#counters = counters;
    this.#issuer = issuer;
  }

  /** `begun`: a browser was sent to the provider. */
  login(outcome: "begun" | "completed" | LoginProblem): void {
    increment(this.#counters?.count("oidc_logins_total", this.#issuer, outcome));
  }

  refresh(outcome: Renewal["state"]): void {
    increment(this.#counters?.count("oidc_refreshes_total", this.#issuer, outcome));
  }

  /** `missing`: there was no session. `repeated`: the provider sent a logout token again. */
  logout(by: "user" | "provider", outcome: "ended" | "missing" | "repeated" | LoginProblem): void {
    increment(this.#counters?.count("oidc_logouts_total", this.#issuer, by, outcome));
  }
}

function increment(count: Count | undefined): void {
  if (count !== undefined) count.count++;
}

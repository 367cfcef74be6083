import type { Logger } from "../../base/log.ts";
import { Seldom } from "../../base/seldom.ts";
import type { Activation } from "../../cel/index.ts";
import type { NetworkExtAuthz } from "../../ir/policies.ts";
import { type Callout, reasonOf } from "../../upstream/callout.ts";
import type { OnCancel } from "../../upstream/on-cancel.ts";
import type { Asker } from "../types.ts";
import { VerdictCache } from "./cache.ts";
import { HttpQuestion, MAX_ANSWER } from "./http-question.ts";
import { QuestionError } from "./verdict.ts";

const NO_BYTES = new Uint8Array(0);
/** Milliseconds between two lines of the log about a service that does not answer. */
const WARN_INTERVAL = 10_000;

/** What a service says about a connection. */
export type NetworkVerdict =
  | {
      readonly allowed: true;
      /** What expressions of requests on this connection read as `extauthz`. */
      readonly metadata: Readonly<Record<string, unknown>> | undefined;
    }
  /** `why` is for the log. */
  | { readonly allowed: false; readonly why: string };

const ALLOWED: NetworkVerdict = { allowed: true, metadata: undefined };

/** Asks a service whether a client may connect (`frontendPolicies.networkExtAuthz`, reference 1.10 and 3.8). */
export class NetworkAuthorizer {
  readonly #config: NetworkExtAuthz;
  readonly #callout: Callout<Asker>;
  readonly #question: HttpQuestion;
  readonly #cache: VerdictCache<NetworkVerdict> | undefined;
  readonly #log: Logger | undefined;
  readonly #warnings = new Seldom(WARN_INTERVAL);

  /**
   * `log` hears of clients that come in because the service has failed. Throws CelError for expressions that cannot be used,
   * and an Error for headers that cannot be set.
   */
  constructor(config: NetworkExtAuthz, callout: Callout<Asker>, log?: Logger) {
    this.#config = config;
    this.#log = log;
    this.#callout = callout;
    this.#question = new HttpQuestion("networkExtAuthz", config.protocol.http, {
      question: "network",
      answer: "networkResponse",
    });
    this.#cache = config.cache === undefined ? undefined : new VerdictCache(config.cache, "network");
  }

  /** `variables` are those of the connection. Never rejects; never settles when it is cancelled. */
  async ask(variables: Activation, onCancel: OnCancel): Promise<NetworkVerdict> {
    const key = this.#cache?.keyOf(variables);
    const known = key === undefined ? undefined : this.#cache?.get(key);
    if (known !== undefined) return known;
    try {
      const { verdict, refusedWith } = await this.#call(variables, onCancel);
      if (key !== undefined) this.#cache?.put(key, verdict, refusedWith, variables);
      return verdict;
    } catch (error) {
      const why = reasonOf(error);
      if (this.#config.failureMode !== "allow" || error instanceof QuestionError) return { allowed: false, why };
      this.#warn(why);
      return ALLOWED;
    }
  }

  /** `unreported`: clients that have come in since the last such line in the same way. */
  #warn(error: string): void {
    this.#warnings.tell((unreported) =>
      this.#log?.warn("networkExtAuthz has failed; connections are let in", {
        error,
        unreported: unreported === 0 ? undefined : unreported,
      }),
    );
  }

  async #call(variables: Activation, onCancel: OnCancel) {
    const target = this.#question.target(variables);
    const answer = await this.#callout.http(
      {
        method: "GET",
        path: target === undefined ? "/" : target.path + target.search,
        headers: this.#question.headers(variables),
        body: NO_BYTES,
        timeoutMs: this.#config.timeout,
        maxBytes: MAX_ANSWER,
      },
      { onCancel, observer: undefined },
    );
    const { status } = answer;
    const verdict: NetworkVerdict =
      status >= 200 && status < 300
        ? { allowed: true, metadata: this.#question.findings(variables, answer) }
        : { allowed: false, why: `the service answered ${status}` };
    return { verdict, refusedWith: verdict.allowed ? undefined : status };
  }
}

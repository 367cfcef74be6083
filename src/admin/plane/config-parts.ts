import type { Origin } from "../../base/origin.ts";

/** The query of `/config/parts`. */
export interface ConfigPartsQuery {
  /** Text in a part, in upper or lower case. What is redacted is not found. */
  readonly search?: string | undefined;
  /** A kind of policy, such as `extAuthz`: only parts where such a policy is in effect, also in shadow, wherever it is written. */
  readonly policy?: string | undefined;
  /** A part to show: its key, its origin or that of something in it, or a line of the file such as `gateway.yaml:31`. */
  readonly at?: string | undefined;
  /** From 1 on. Default: the page with the part `at`. */
  readonly page?: number | undefined;
  /** Parts of a page at most. */
  readonly limit?: number;
}

/** A page of the parts of the configuration in effect. */
export interface ConfigPartsAnswer {
  readonly generation: number;
  /** How many parts there are, and how many of them fit the search and have the policy. */
  readonly total: number;
  readonly found: number;
  readonly page: number;
  readonly parts: readonly ConfigPart[];
  /** The part that `at` names, without the parts inside it, as `/config_dump` shows it; absent if no part matches. */
  readonly chosen?: ConfigPart & { readonly value: Readonly<Record<string, unknown>> };
}

/** A part of a configuration that is written at one place. */
export interface ConfigPart {
  readonly key: string;
  readonly kind:
    | "bind"
    | "listener"
    | "route"
    | "route group"
    | "backend"
    | "policy"
    | "service"
    | "workload"
    | "settings";
  readonly name: string;
  /** How many parts it is in. */
  readonly depth: number;
  readonly origin?: Origin;
}

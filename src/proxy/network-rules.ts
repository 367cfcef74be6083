import { type Activation, compileCondition, type Expression } from "../cel/index.ts";
import { type Connected, Source } from "../http/source.ts";
import type { NetworkRule } from "../ir/ir.ts";
import type { Services } from "./services.ts";

/** `frontendPolicies.networkAuthorization`: who may connect at all (reference 1.10, 3.3). */
export class NetworkRules {
  readonly #deny: readonly Expression[];
  readonly #require: readonly Expression[];
  readonly #allow: readonly Expression[];

  /** Throws CelError for a rule that cannot be used. */
  constructor(rules: readonly NetworkRule[]) {
    const of = (mode: NetworkRule["mode"]): Expression[] =>
      rules.filter((rule) => rule.mode === mode).map((rule) => compileCondition(rule.expression, "network"));
    this.#deny = of("deny");
    this.#require = of("require");
    this.#allow = of("allow");
  }

  /** A rule that fails is false, so a failing `deny` denies nothing. Without `allow` rules everyone else may connect. */
  allows(variables: Activation): boolean {
    if (this.#deny.some((rule) => rule.matches(variables))) return false;
    if (!this.#require.every((rule) => rule.matches(variables))) return false;
    return this.#allow.length === 0 || this.#allow.some((rule) => rule.matches(variables));
  }
}

/** What expressions can read of a connection. */
export function connectionVariables(
  connection: Connected,
  serverName: string,
  { env, workloads }: Pick<Services, "env" | "workloads">,
): Activation {
  const destination = { address: connection.localAddress, port: connection.localPort, hostname: serverName };
  return { source: new Source(connection, workloads), destination, env };
}

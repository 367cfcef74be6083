/**
 * The shadow of a kind of policy: the module under whose key a set has policies with `shadow: true`. It prepares, merges and shows what
 * the kind itself does, and runs the kind's hook where it has no effect.
 */
import type { CelEnvironment } from "../../cel/index.ts";
import { CredentialNames } from "../contract/credential-names.ts";
import { OwnFields } from "../contract/own-fields.ts";
import { type ShadowableKind, type ShadowKey, shadowKey } from "../contract/shadow.ts";
import type { CredentialLocation } from "../schema/location.ts";
import type { Bind, Policy } from "./policy.ts";

/** The module for policies of this kind with `shadow: true`. It runs before the kind itself: that removes credentials. */
export function shadowOf<Kind extends ShadowableKind, Config>(
  policy: Policy<Kind, Config>,
): Policy<ShadowKey<Kind>, Config> {
  const { kind, traceKey: _enforced, ...same } = policy;
  const prepare = (config: Config, cel: CelEnvironment): Bind => {
    const bind = policy.prepare(config, cel);
    return (deps) => {
      const { onRequest } = bind({
        ...deps,
        shadow: true,
        credentials: new WatchedNames(deps.credentials),
        // Clients may send fields that the policy does not set.
        ownFields: new OwnFields(),
      });
      if (onRequest === undefined) return {};
      return {
        onRequest(context) {
          context.shadow.run(kind, deps, onRequest);
          return undefined;
        },
      };
    };
  };
  return { ...same, kind: shadowKey(kind), prepare };
}

/** Names that are redacted like those of enforced policies; but the gateway removes nothing from requests because of them. */
class WatchedNames extends CredentialNames {
  readonly #names: CredentialNames;

  constructor(names: CredentialNames) {
    super();
    this.#names = names;
  }

  override add(location: CredentialLocation): void {
    this.#names.watch(location);
  }
}

import type { PolicyInputs } from "../../policies/policy-set.ts";
import type { ConfigFile } from "../schema/config.ts";

/** What the configuration attaches to backends and services wherever they are used, before it is translated. */
export class AttachedPolicies {
  readonly #backends: ReadonlyMap<string, ConfigFile["backends"][number]>;
  readonly #targeted: ConfigFile["policies"];

  constructor({ backends, policies }: Pick<ConfigFile, "backends" | "policies">) {
    this.#backends = new Map(backends.map((each) => [each.name, each]));
    this.#targeted = policies.filter(({ target }) => target.backend !== undefined);
  }

  /** Of a named backend; its own win over those of `policies[]`. */
  ofBackend(name: string): PolicyInputs {
    const targeted = this.#targeted.filter(({ target }) => {
      const backend = target.backend?.backend;
      return backend?.name === name && backend.namespace === "";
    });
    return merge([...targeted.map(({ policy }) => policy), this.#backends.get(name)?.policies]);
  }

  /** Of a service (`<namespace>/<hostname>`); those for its port win. */
  ofService(key: string, port: number): PolicyInputs {
    const at = (wanted: number | undefined) =>
      this.#targeted.filter(({ target }) => {
        const service = target.backend?.service;
        return service !== undefined && `${service.namespace}/${service.hostname}` === key && service.port === wanted;
      });
    return merge([...at(undefined), ...at(port)].map(({ policy }) => policy));
  }
}

function merge(sets: readonly (PolicyInputs | undefined)[]): PolicyInputs {
  const merged: PolicyInputs = {};
  for (const set of sets) Object.assign(merged, set);
  return merged;
}

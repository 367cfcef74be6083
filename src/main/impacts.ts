import { type Locate, withPlace } from "../base/origin.ts";
import { type Changed, impactAside } from "../impact/impact-thread.ts";
import type { GatewayImpact } from "../impact/merge.ts";
import type { PackedIr } from "../ir/packed-ir.ts";
import type { SampledRequest } from "../recorder/sample.ts";
import type { SampleRing } from "../recorder/sample-ring.ts";
import { samplesIn } from "../recorder/samples.ts";
import type { RehearsalSettings } from "../rehearsal/rehearsal.ts";

/** The gateway whose requests are sampled. */
interface SampledGateway {
  /** In effect. */
  readonly configuration: PackedIr;
  readonly status: { readonly generation: number };
  /** Where the configuration in effect is written. */
  readonly locate: Locate;
  readonly supervisor: { readonly samples: readonly SampleRing[]; readonly sampleKey: Uint8Array };
}

/** Finds what changes of the configuration would do to the requests of this gateway. */
export class Impacts {
  readonly #gateway: SampledGateway;
  readonly #settings: RehearsalSettings;

  constructor(gateway: SampledGateway, settings: RehearsalSettings) {
    this.#gateway = gateway;
    this.#settings = settings;
  }

  /** Whether there are samples to judge by. */
  get areKnown(): boolean {
    return this.#gateway.supervisor.samples.length > 0;
  }

  /** The requests that arrived at `since`, epoch ms, or later. */
  samples(since: number): SampledRequest[] {
    return samplesIn(this.#gateway.supervisor.samples, since);
  }

  /** The impact on these requests. Rejects with BadConfiguration if `after` is not valid. */
  async of(after: Changed, since = Number.NEGATIVE_INFINITY): Promise<GatewayImpact> {
    const { configuration, supervisor } = this.#gateway;
    const { generation } = this.#gateway.status;
    const samples = this.samples(since);
    const { sampleKey } = supervisor;
    const impact = await impactAside({ samples, sampleKey, before: configuration, settings: this.#settings, after });
    const oldest = samples[0]?.time ?? null;
    if (this.#gateway.status.generation !== generation) return { ...impact, since: oldest };
    const { locate } = this.#gateway;
    const changes = impact.changes.map((change) => ({ ...change, before: withPlace(change.before, locate) }));
    return { ...impact, changes, since: oldest };
  }
}

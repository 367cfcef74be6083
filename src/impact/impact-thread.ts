/** Finds an impact in a thread of its own, so that neither the caller nor workers wait for it. */
import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { moduleUrl } from "../base/app-root.ts";
import type { NamedText } from "../config/parse/config-files.ts";
import type { PackedIr } from "../ir/packed-ir.ts";
import type { SampledRequest } from "../recorder/sample.ts";
import { BadConfiguration } from "../rehearsal/question.ts";
import type { RehearsalSettings } from "../rehearsal/rehearsal.ts";
import type { Resources } from "../translation/resources/store.ts";
import type { Impact } from "./impact.ts";

/** Milliseconds for one impact. */
const LONGEST_MS = 60_000;
/** As for the loading thread: V8 keeps the pages of a thread that has ended for a while. */
const YOUNG_GENERATION_MB = 12;

/** The configuration after the change: one that a client has sent, or one that the gateway has loaded. */
export type Changed =
  | {
      readonly texts: readonly NamedText[];
      /** Documents that the gateway has fetched; no others are. */
      readonly resources: Resources;
    }
  | { readonly configuration: PackedIr };

/** What the thread compares. */
export interface ImpactTask {
  readonly samples: readonly SampledRequest[];
  /** With which the digests of the samples were made. */
  readonly sampleKey: Uint8Array;
  /** The configuration in effect. */
  readonly before: PackedIr;
  readonly settings: RehearsalSettings;
  readonly after: Changed;
}

/** What the thread replies; `invalid` as `problems` of BadConfiguration. */
export type ImpactReply = { readonly impact: Impact } | { readonly invalid: string } | { readonly failure: string };

/** As `impactOf`. Rejects with BadConfiguration if the configuration after the change is not valid. */
export async function impactAside(task: ImpactTask): Promise<Impact> {
  const worker = new Worker(moduleUrl("impact/impact-worker"), {
    workerData: task,
    name: "impact",
    resourceLimits: { maxYoungGenerationSizeMb: YOUNG_GENERATION_MB },
  });
  worker.unref();
  const ended = new AbortController();
  worker.once("exit", (code) =>
    ended.abort(new Error(`the thread that compares configurations ended with code ${code}`)),
  );
  const timer = setTimeout(() => {
    ended.abort(new Error(`the comparison takes longer than ${LONGEST_MS / 1000} s`));
  }, LONGEST_MS);
  try {
    const reply = await replyOf(worker, ended.signal);
    if ("impact" in reply) return reply.impact;
    if ("invalid" in reply) throw new BadConfiguration(reply.invalid);
    throw new Error(reply.failure);
  } finally {
    clearTimeout(timer);
    await worker.terminate();
  }
}

/** Rejects with the reason of the signal. A thread may end as soon as it has replied, so the signal says nothing about a reply that is there. */
async function replyOf(worker: Worker, ended: AbortSignal): Promise<ImpactReply> {
  try {
    const [reply] = (await once(worker, "message", { signal: ended })) as [ImpactReply];
    return reply;
  } catch (error) {
    throw ended.aborted ? ended.reason : error;
  }
}

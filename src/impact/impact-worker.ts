/** Thread entry of impact-thread.ts: finds one impact and sends it. */
import { parentPort, workerData } from "node:worker_threads";
import { messageOf } from "../base/errors.ts";
import type { Locate } from "../base/origin.ts";
import { digestOf } from "../recorder/sample.ts";
import { BadConfiguration } from "../rehearsal/question.ts";
import { Rehearsal } from "../rehearsal/rehearsal.ts";
import { type Impact, impactOf } from "./impact.ts";
import type { ImpactReply, ImpactTask } from "./impact-thread.ts";

async function impactOfTask(task: ImpactTask): Promise<Impact> {
  const after = await changed(task);
  const before = new Rehearsal(task.before, task.settings);
  const digest = (name: string, value: string): string => digestOf(task.sampleKey, name, value);
  return await impactOf(task.samples, { rehearsal: before }, after, { digestOf: digest });
}

async function changed({ after, settings }: ImpactTask): Promise<{ rehearsal: Rehearsal; locate?: Locate }> {
  if ("configuration" in after) return { rehearsal: compiled(after.configuration, settings) };
  const { loadTexts } = await import("../rehearsal/load-texts.ts");
  const { configuration, settings: own, locate } = loadTexts(after.texts, after.resources);
  return { rehearsal: compiled(configuration, { ...settings, ...own }), locate };
}

/** Fails as a gateway would that prepares the configuration. */
function compiled(...[configuration, settings]: ConstructorParameters<typeof Rehearsal>): Rehearsal {
  try {
    return new Rehearsal(configuration, settings);
  } catch (error) {
    throw new BadConfiguration(messageOf(error));
  }
}

async function main(port: NonNullable<typeof parentPort>, task: ImpactTask): Promise<void> {
  const reply: ImpactReply = await impactOfTask(task).then(
    (impact) => ({ impact }),
    (error: unknown) =>
      error instanceof BadConfiguration ? { invalid: error.problems } : { failure: messageOf(error) },
  );
  port.postMessage(reply);
}

if (parentPort !== null) void main(parentPort, workerData as ImpactTask);

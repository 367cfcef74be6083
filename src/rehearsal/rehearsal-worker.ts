/**
 * The entry of the rehearsal thread (rehearsal-thread.ts). It keeps the configuration that it was asked about last compiled, and
 * rehearses one request after the other.
 */
import { parentPort, workerData } from "node:worker_threads";
import { messageOf } from "../base/errors.ts";
import type { PackedIr } from "../ir/packed-ir.ts";
import { explain } from "./explain.ts";
import { BadFacts } from "./facts.ts";
import { Rehearsal, type RehearsalSettings } from "./rehearsal.ts";
import type { Rehearsed, Task } from "./rehearsal-thread.ts";

const settings = workerData as RehearsalSettings;
let compiled: Rehearsal | undefined;

function use(configuration: PackedIr): Rehearsal {
  compiled?.close();
  compiled = undefined;
  compiled = new Rehearsal(configuration, settings);
  return compiled;
}

async function rehearse({ configuration, ports, question }: Task): Promise<Rehearsed> {
  try {
    const rehearsal = configuration === undefined ? compiled : use(configuration);
    if (rehearsal === undefined) throw new Error("the rehearsal thread has no configuration");
    return { outcomes: await explain(rehearsal, question, ports) };
  } catch (error) {
    if (error instanceof BadFacts) return { bad: { message: error.message, hint: error.hint } };
    return { failure: messageOf(error) };
  }
}

parentPort?.on("message", async (task: Task) => parentPort?.postMessage(await rehearse(task)));

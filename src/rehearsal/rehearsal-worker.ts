/**
 * The entry of the rehearsal thread (rehearsal-thread.ts). It keeps the configuration that it was asked about last compiled, and
 * rehearses one request after the other.
 */
import { parentPort, workerData } from "node:worker_threads";
import { messageOf } from "../base/errors.ts";
import type { PackedIr } from "../ir/packed-ir.ts";
import { explain, type Live } from "./explain.ts";
import { BadFacts } from "./facts.ts";
import { Rehearsal, type RehearsalSettings } from "./rehearsal.ts";
import type { Reply, Task, ToThread } from "./rehearsal-thread.ts";

const settings = workerData as RehearsalSettings;
let compiled: Rehearsal | undefined;

function use(configuration: PackedIr): Rehearsal {
  compiled?.close();
  compiled = undefined;
  compiled = new Rehearsal(configuration, settings);
  return compiled;
}

async function rehearse(
  { configuration, ports, notices, question }: Task,
  endpoints: Live["endpoints"],
): Promise<Reply> {
  try {
    const rehearsal = configuration === undefined ? compiled : use(configuration);
    if (rehearsal === undefined) throw new Error("the rehearsal thread has no configuration");
    rehearsal.notices = notices;
    return { outcomes: await explain(rehearsal, question, { ports, endpoints }) };
  } catch (error) {
    if (error instanceof BadFacts) return { bad: { message: error.message, hint: error.hint } };
    return { failure: messageOf(error) };
  }
}

function main(port: NonNullable<typeof parentPort>): void {
  const reply = (message: Reply): void => port.postMessage(message);
  let onStats: (stats: Awaited<ReturnType<Live["endpoints"]>>) => void = () => {};
  const endpoints: Live["endpoints"] = (keys) =>
    new Promise((resolve) => {
      onStats = resolve;
      reply({ wanted: keys });
    });
  port.on("message", async (message: ToThread) => {
    if ("stats" in message) onStats(message.stats);
    else reply(await rehearse(message, endpoints));
  });
}

if (parentPort !== null) main(parentPort);

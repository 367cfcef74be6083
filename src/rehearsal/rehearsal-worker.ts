/**
 * The entry of the rehearsal thread (rehearsal-thread.ts). It keeps the configuration that it was asked about last compiled, and
 * rehearses one request after the other.
 */
import { parentPort, workerData } from "node:worker_threads";
import { messageOf } from "../base/errors.ts";
import { UNNAMED } from "../config/parse/config-files.ts";
import type { PackedIr } from "../ir/packed-ir.ts";
import { explain, type Live } from "./explain.ts";
import { type Explained, inFile } from "./explanation.ts";
import { BadFacts } from "./facts.ts";
import { explainHappened } from "./happened.ts";
import { BadConfiguration, bringsConfiguration, type QuestionWithConfiguration } from "./question.ts";
import { Rehearsal, type RehearsalSettings } from "./rehearsal.ts";
import type { Reply, Task, ToThread } from "./rehearsal-thread.ts";

const settings = workerData as RehearsalSettings;
let compiled: Rehearsal | undefined;

async function rehearse(task: Task, endpoints: Live["endpoints"]): Promise<Reply> {
  try {
    return {
      explained: await (bringsConfiguration(task.question) ? ofText(task, task.question) : ofGateway(task, endpoints)),
    };
  } catch (error) {
    if (error instanceof BadFacts) return { bad: { message: error.message, hint: error.hint, about: error.about } };
    return error instanceof BadConfiguration ? { invalid: error.problems } : { failure: messageOf(error) };
  }
}

/** The configuration in effect stays compiled for the next question. */
function ofGateway(
  { configuration, ports, notices, question }: Task,
  endpoints: Live["endpoints"],
): ReturnType<typeof explain> {
  if (configuration !== undefined) {
    compiled?.close();
    compiled = undefined;
    compiled = new Rehearsal(configuration, settings);
  }
  if (compiled === undefined) throw new Error("the rehearsal thread has no configuration");
  compiled.notices = notices;
  return "record" in question
    ? explainHappened(compiled, question, ports)
    : explain(compiled, question, { ports, endpoints });
}

async function ofText({ resources }: Task, question: QuestionWithConfiguration): Promise<Explained> {
  const { config, configName = UNNAMED } = question;
  const { loadTexts } = await import("./load-texts.ts");
  const {
    configuration,
    settings: own,
    locate,
  } = loadTexts(typeof config === "string" ? [{ name: configName, text: config }] : config, resources);
  const rehearsal = compile(configuration, { ...settings, ...own });
  try {
    return inFile(await explain(rehearsal, question), locate);
  } finally {
    rehearsal.close();
  }
}

/** What a gateway would find out when it prepares the configuration. */
function compile(configuration: PackedIr, own: RehearsalSettings): Rehearsal {
  try {
    return new Rehearsal(configuration, own);
  } catch (error) {
    throw new BadConfiguration(messageOf(error));
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

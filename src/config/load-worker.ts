/** Thread entry of load-thread.ts: loads one configuration and sends the result. */
import { parentPort, workerData } from "node:worker_threads";
import { loadConfig } from "./load.ts";
import { type LoadTask, packLoaded } from "./load-thread.ts";

const { source, env, resources, packed } = workerData as LoadTask;
parentPort?.postMessage(packLoaded(loadConfig(source, env, resources), packed));

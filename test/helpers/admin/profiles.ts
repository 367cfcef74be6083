import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { gunzipSync } from "node:zlib";
import { Profile } from "pprof-format";
import { moduleUrl } from "../../../src/base/app-root.ts";

/** A thread that works on command and records its own profiles with the real profilers. */
export class ProfiledThread {
  readonly #worker: Worker;
  readonly #ready: Promise<unknown>;

  constructor() {
    this.#worker = new Worker(CODE, { eval: true, workerData: { profiles: moduleUrl("worker/profiles").href } });
    this.#ready = once(this.#worker, "message");
  }

  /** Runs one command of `CODE` and resolves with its result. */
  async ask<T>(call: string, argument = 0): Promise<T> {
    await this.#ready;
    const answer = once(this.#worker, "message");
    this.#worker.postMessage({ call, argument });
    const [result] = await answer;
    return result;
  }

  async stop(): Promise<void> {
    await this.#worker.terminate();
  }
}

const CODE = `const { parentPort, workerData } = require("node:worker_threads");
   const kept = [];
   function busyInWorker(ms) {
     let sum = 0;
     for (const end = performance.now() + ms; performance.now() < end; ) for (let i = 0; i < 1e4; i++) sum += Math.sqrt(i);
     return sum;
   }
   function keepInWorker(bytes) {
     for (let i = 0; i < bytes / 1024; i++) kept.push(new Array(128).fill(i));
   }
   import(workerData.profiles).then(({ startCpuProfile, heapProfile }) => {
     let running;
     parentPort.on("message", async ({ call, argument }) => {
       let result;
       if (call === "start") running = await startCpuProfile(argument);
       if (call === "busy") result = busyInWorker(argument);
       if (call === "stop") result = await running.stop();
       if (call === "keep") keepInWorker(argument);
       if (call === "drop") kept.length = 0;
       if (call === "heap") result = await heapProfile();
       parentPort.postMessage(result);
     });
     parentPort.postMessage("ready");
   });`;

/** An encoded profile, read back. */
export function decodeProfile(bytes: Uint8Array): Profile {
  return Profile.decode(gunzipSync(bytes));
}

/** A sample with the names of its frames. */
export interface Flat {
  readonly thread: string;
  /** Innermost first. */
  readonly stack: readonly string[];
  readonly files: readonly string[];
  readonly values: readonly number[];
}

export function flatten(profile: Profile): Flat[] {
  const text = (index: number | bigint): string => profile.stringTable.strings[Number(index)] ?? "";
  const functions = new Map(profile.function.map((each) => [Number(each.id), each]));
  const locations = new Map(profile.location.map((each) => [Number(each.id), each]));
  return profile.sample.map(({ locationId, value, label }) => {
    const frames = locationId.map((id) => functions.get(Number(locations.get(Number(id))?.line[0]?.functionId)));
    return {
      thread: label.map((each) => `${text(each.key)}=${text(each.str)}`).join(),
      stack: frames.map((frame) => text(frame?.name ?? 0)),
      files: frames.map((frame) => text(frame?.filename ?? 0)),
      values: value.map(Number),
    };
  });
}

/** The kinds of the values, such as `cpu/nanoseconds`. */
export function kinds(profile: Profile): string[] {
  const text = (index: number | bigint): string => profile.stringTable.strings[Number(index)] ?? "";
  return profile.sampleType.map(({ type, unit }) => `${text(type)}/${text(unit)}`);
}

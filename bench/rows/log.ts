import { truncateSync } from "node:fs";
import { mkdtemp } from "node:fs/promises";
import { join } from "node:path";
import { median, pairedRatio } from "../lib/stats.ts";
import { number } from "../lib/table.ts";
import type { Row } from "../lib/types.ts";
import { startOrigin } from "../peers/origin.ts";
import { oneRoute, onOneCore, startTracegate } from "../peers/tracegate.ts";
import { cpuOf, interleave, stopProxies } from "./compare.ts";

/** CPU per request of a gateway that writes its access log to a file, in JSON, over one that writes none. */
export const log: Row = {
  name: "log",
  title: "access log in JSON to a file against no access log",
  async run(bench) {
    const origin = await startOrigin(bench);
    const options = { ...onOneCore(bench), routes: oneRoute(origin.port) };
    // Not beside the configuration: each write would wake the gateway, which watches that folder.
    const logFile = join(await mkdtemp(join(bench.folder, "log-")), "access.log");
    const logging = await startTracegate(bench, { ...options, accessLog: true, logFile });
    const silent = await startTracegate(bench, options);
    // Emptied before each round, so that the disk does not fill up; the file is open for appending.
    const before = async (): Promise<() => void> => {
      truncateSync(logFile);
      return () => {};
    };
    const samples = await interleave(bench, [
      { name: "logging", proxy: logging, before },
      { name: "silent", proxy: silent },
    ]);
    await stopProxies([logging, silent, origin]);
    const [on, off] = [cpuOf(samples, "logging"), cpuOf(samples, "silent")];
    const measure = {
      measure: "CPU per request with an access log in JSON to a file",
      tracegate: `${number(median(on))} µs`,
      peers: `without ${number(median(off))} µs`,
      value: pairedRatio(on, off),
      limits: { better: "less", must: 1.1, aim: 1.05 },
    } as const;
    return { measures: [measure], samples };
  },
};

import { once } from "node:events";
import { request } from "node:http";
import { median, pairedRatio } from "../lib/stats.ts";
import { number } from "../lib/table.ts";
import type { Row } from "../lib/types.ts";
import { startOrigin } from "../peers/origin.ts";
import { oneRoute, onOneCore, type RunningTracegate, startTracegate } from "../peers/tracegate.ts";
import { cpuOf, interleave, stopProxies } from "./compare.ts";

/** The same process with a trace armed whose filter matches no request, and without. */
export const armed: Row = {
  name: "armed",
  title: "a trace armed that never matches against no trace",
  async run(bench) {
    const origin = await startOrigin(bench);
    const proxy = await startTracegate(bench, { ...onOneCore(bench), routes: oneRoute(origin.port) });
    const samples = await interleave(bench, [
      { name: "armed", proxy, before: () => arm(proxy) },
      { name: "disarmed", proxy },
    ]);
    await stopProxies([proxy, origin]);
    const [on, off] = [cpuOf(samples, "armed"), cpuOf(samples, "disarmed")];
    const measure = {
      measure: "CPU per request while an armed trace never matches",
      tracegate: `${number(median(on))} µs`,
      peers: `disarmed ${number(median(off))} µs`,
      value: pairedRatio(on, off),
      limits: { better: "less", must: 1.1, aim: 1.03 },
    } as const;
    return { measures: [measure], samples };
  },
};

/** Opens the trace stream and waits for its first bytes; the result closes it, which disarms. */
async function arm({ adminPort }: RunningTracegate): Promise<() => void> {
  const path = `/debug/trace?expression=${encodeURIComponent('request.path == "/never"')}`;
  const call = request({ host: "127.0.0.1", port: adminPort, path, method: "POST" }).end();
  const [response] = await once(call, "response");
  if (response.statusCode !== 200) throw new Error(`arming a trace: status ${response.statusCode}`);
  let ended = false;
  response.on("data", (chunk: Buffer) => {
    if (chunk.includes("data:")) throw new Error("the filter that never matches matched");
  });
  response.once("close", () => {
    ended = true;
  });
  await once(response, "data");
  return () => {
    if (ended) throw new Error("the armed trace ended during the round");
    call.destroy();
  };
}

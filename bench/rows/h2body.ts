import { existsSync } from "node:fs";
import { truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { transferH2 } from "../lib/h2load.ts";
import type { Bench, Row, RunningProxy } from "../lib/types.ts";
import { envoy } from "../peers/envoy.ts";
import { compareTransfers, type Direction, GIB } from "./transfers.ts";

/** A body of 1 GiB over one stream of HTTP/2; HTTP/1.1 to the origin. */
export const h2body: Row = {
  name: "h2body",
  title: "a body of 1 GiB each way over one stream of HTTP/2",
  run: (bench) =>
    compareTransfers(bench, {
      what: "1 GiB over one h2c stream",
      protocol: "h2",
      peer: envoy,
      limits: { better: "more", must: 0.8, aim: 1 },
      send,
    }),
};

/** h2load cannot pause; its windows have the largest size. */
async function send(bench: Bench, proxy: RunningProxy, direction: Direction): Promise<number> {
  const load = { connections: 1, streams: 1 };
  if (direction === "down") return transferH2(bench, proxy, { ...load, path: "/big" });
  const body = join(bench.folder, "upload");
  // Once: a new file would make the client, which shares its core with the sink, allocate 1 GiB of page cache for each transfer.
  if (!existsSync(body)) {
    await writeFile(body, "");
    await truncate(body, GIB);
  }
  return transferH2(bench, proxy, { ...load, path: "/sink", body });
}

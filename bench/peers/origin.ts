/** The upstream of the HTTP rows: nginx as a static responder. */
import { truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Bench, RunningProxy } from "../lib/types.ts";
import { nginx, startNginx } from "./nginx.ts";

const SMALL_BODY_BYTES = 102;

/** Answers everything with 200 and 102 bytes; `/big` is a sparse file of `bigBytes` (sent by sendfile, no disk is read). */
export async function startOrigin(bench: Bench, bigBytes = 0): Promise<RunningProxy> {
  const program = nginx.find();
  if (program === undefined) throw new Error(`the origin is nginx, which is missing: ${nginx.hint}`);
  const big = join(bench.folder, "big");
  await writeFile(big, "");
  await truncate(big, bigBytes);
  const body = "x".repeat(SMALL_BODY_BYTES);
  return startNginx(
    bench,
    program,
    "origin",
    bench.cores.origin,
    (port) => `server {
    listen 127.0.0.1:${port} backlog=4096;
    root ${bench.folder};
    location / { default_type text/plain; return 200 "${body}"; }
    location = /big { default_type application/octet-stream; }
  }`,
  );
}

import type { Row } from "../lib/types.ts";
import { nginx } from "../peers/nginx.ts";
import { compareTransfers, sendByScript } from "./transfers.ts";

/** A body of 1 GiB over HTTP/1.1. */
export const body: Row = {
  name: "body",
  title: "a body of 1 GiB each way",
  run: (bench) =>
    compareTransfers(bench, {
      what: "1 GiB",
      protocol: "http",
      peer: nginx,
      limits: { better: "more", must: 0.7, aim: 0.9 },
      send: sendByScript,
    }),
};

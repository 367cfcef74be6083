import type { Row } from "../lib/types.ts";
import { haproxy } from "../peers/haproxy.ts";
import { compareTransfers, sendByScript } from "./transfers.ts";

/** 1 GiB over one connection through a listener of protocol TCP. */
export const tcp: Row = {
  name: "tcp",
  title: "1 GiB each way through a TCP listener",
  run: (bench) =>
    compareTransfers(bench, {
      what: "1 GiB of TCP",
      protocol: "tcp",
      peer: haproxy,
      limits: { better: "more", must: 0.6, aim: 0.9 },
      send: sendByScript,
    }),
};

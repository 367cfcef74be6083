import type { PlainReply } from "../server/reply.ts";
import { duration } from "./parameters.ts";
import type { AdminCall, AdminRoute } from "./route.ts";

export const sampleRoutes: readonly AdminRoute[] = [
  {
    path: "/samples",
    methods: ["GET"],
    parameters: ["last"],
    summary: "sampled requests as a file for `tracegate check --impact`, secrets as digests; last=5m",
    handle: samples,
  },
];

function samples({ plane, query }: AdminCall): PlainReply {
  const last = duration(query, "last") ?? Number.POSITIVE_INFINITY;
  return { status: 200, type: "application/jsonl", body: plane.samples(Date.now() - last) };
}

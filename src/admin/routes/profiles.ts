import { AdminBadRequest, type AdminPlane } from "../plane/plane.ts";
import { fileReply } from "../server/reply.ts";
import type { AdminRoute } from "./route.ts";

export const profileRoutes: readonly AdminRoute<Pick<AdminPlane, "cpuProfile" | "heapProfile">>[] = [
  {
    path: "/debug/pprof/profile",
    methods: ["GET"],
    parameters: ["seconds", "frequency"],
    summary: "CPU profile of all threads (gzipped pprof); seconds=1..300 (10), frequency=1..1000 Hz (100)",
    handle: async ({ plane, query, signal }) => {
      const seconds = integer(query, "seconds", 10, 300);
      const frequency = integer(query, "frequency", 100, 1000);
      return fileReply("cpu.pb.gz", await plane.cpuProfile(seconds, frequency, signal));
    },
  },
  {
    path: "/debug/pprof/heap",
    methods: ["GET"],
    summary: "sampled live heap of all threads (gzipped pprof); sampling starts with the first call",
    handle: async ({ plane }) => fileReply("heap.pb.gz", await plane.heapProfile()),
  },
];

/** An integer parameter from 1 to `most`. */
function integer(query: URLSearchParams, name: string, fallback: number, most: number): number {
  const text = query.get(name);
  if (text === null) return fallback;
  const value = /^\d{1,6}$/.test(text) ? Number(text) : 0;
  if (value >= 1 && value <= most) return value;
  throw new AdminBadRequest(`invalid ${name} ${JSON.stringify(text)}: expected an integer from 1 to ${most}`);
}

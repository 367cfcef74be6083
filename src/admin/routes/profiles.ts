import type { AdminPlane } from "../plane/plane.ts";
import { fileReply } from "../server/reply.ts";
import { integer } from "./parameters.ts";
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

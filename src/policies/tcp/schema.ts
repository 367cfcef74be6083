import { z } from "zod";
import { duration } from "../shared/duration-schema.ts";
import { poolLimits } from "../shared/pool-limits-schema.ts";

export const schema = z
  .strictObject({
    connectTimeout: duration
      .optional()
      .describe("Until a connection is there; later: 504. Default: that of `config.backend`."),
    keepalives: z
      .strictObject({
        enabled: z.boolean().default(true).describe("Whether silent connections are probed."),
        time: duration.prefault("180s").describe("Silence before the first probe."),
        interval: duration.optional().describe("Between probes; the system's own setting applies."),
        retries: z.int().min(1).optional().describe("Probes without answer; the system's own setting applies."),
      })
      .optional()
      .describe("TCP keepalives of the connections. Default: those of `config.backend`."),
    ...poolLimits("connections"),
  })
  .describe("Sockets to a backend.");

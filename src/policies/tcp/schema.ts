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
      })
      .optional()
      .describe("TCP keepalives of the connections. Default: those of `config.backend`."),
    ...poolLimits("connections"),
  })
  .describe("Sockets to a backend.");

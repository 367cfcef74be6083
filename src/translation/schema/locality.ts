import { z } from "zod";

/** Where something runs. */
export const locality = z.strictObject({
  region: z.string().optional().describe("Such as `eu-north`."),
  zone: z.string().optional().describe("Zone within the region."),
  subzone: z.string().optional().describe("Subzone within the zone."),
});

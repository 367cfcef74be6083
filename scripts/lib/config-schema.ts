import { z } from "zod";
import { configFile } from "../../src/config/schema/config.ts";

/** schema/config.json: what an editor needs to complete and check a configuration file. */
export function configSchema(): string {
  const schema = z.toJSONSchema(configFile, { io: "input", reused: "ref" });
  return `${JSON.stringify({ title: "tracegate configuration", ...schema }, null, 2)}\n`;
}

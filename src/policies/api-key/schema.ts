import { createHash } from "node:crypto";
import { z } from "zod";
import type { ConfigOf } from "../resolve.ts";
import { location } from "../shared/credentials/location-schema.ts";

const metadata = z
  .record(z.string(), z.unknown())
  .optional()
  .describe("What expressions find in `apiKey` when this key is used.");

const key = z
  .union([
    z.strictObject({ key: z.string().min(1).describe("The key itself; better from a variable: `${NAME}`."), metadata }),
    z.strictObject({
      keyHash: z
        .string()
        .regex(/^sha256:[0-9a-fA-F]{64}$/, { message: "not a hash; write sha256: and 64 hexadecimal digits" })
        .describe("`sha256:` and the SHA-256 of the key in hexadecimal, as `printf %s KEY | sha256sum` prints it."),
      metadata,
    }),
  ])
  .transform((input) => ({
    // From here on nobody needs the key itself.
    hash: "key" in input ? createHash("sha256").update(input.key).digest("hex") : input.keyHash.slice(7).toLowerCase(),
    ...(input.metadata !== undefined && { metadata: input.metadata }),
  }))
  .meta({ id: "ApiKey", description: "One key that is accepted." });

export const schema = z
  .strictObject({
    keys: z.array(key).describe("Keys that are accepted."),
    mode: z
      .enum(["strict", "optional", "permissive"])
      .default("optional")
      .describe(
        "`strict`: without a valid key 401; `optional` (default): without a key the request passes, a wrong one is 401; `permissive`: never 401.",
      ),
    location: location
      .prefault({ header: { name: "authorization", prefix: "Bearer " } })
      .describe("Where the key stands. Default: `Authorization: Bearer KEY`."),
  })
  .describe(
    "Asks clients for a key; a valid one is taken out of the request, and expressions read its metadata in `apiKey`. A 401 has a challenge of the scheme that `location` begins with, elsewhere `ApiKey`.",
  );

export type ApiKeyAuth = ConfigOf<typeof schema>;
export type ApiKey = ApiKeyAuth["keys"][number];

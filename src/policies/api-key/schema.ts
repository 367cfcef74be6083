import { createHash } from "node:crypto";
import { z } from "zod";
import { location } from "../schema/location.ts";
import type { ConfigOf } from "../schema/resolved.ts";

const metadata = z
  .record(z.string(), z.unknown())
  .optional()
  .describe("The value of `apiKey` in expressions for requests with this key.");

const key = z
  .union([
    z.strictObject({
      key: z.string().min(1).describe("The key, preferably from an environment variable: `${NAME}`."),
      metadata,
    }),
    z.strictObject({
      keyHash: z
        .string()
        .regex(/^sha256:[0-9a-fA-F]{64}$/, { message: "not a hash; write sha256: and 64 hexadecimal digits" })
        .describe(
          "`sha256:` and the SHA-256 digest of the key in hexadecimal, as printed by `printf %s KEY | sha256sum`.",
        ),
      metadata,
    }),
  ])
  .transform((input) => ({
    // The plain key goes no further than this: workers, dumps and traces never have it.
    hash: "key" in input ? createHash("sha256").update(input.key).digest("hex") : input.keyHash.slice(7).toLowerCase(),
    ...(input.metadata !== undefined && { metadata: input.metadata }),
  }))
  .meta({ id: "ApiKey", description: "An accepted key." });

export const schema = z
  .strictObject({
    keys: z.array(key).describe("The accepted keys."),
    mode: z
      .enum(["strict", "optional", "permissive"])
      .default("optional")
      .describe(
        "`strict`: a valid key is required; `optional` (default): requests without a key pass, an invalid key gets 401; `permissive`: requests with an invalid one pass too.",
      ),
    location: location
      .prefault({ header: { name: "authorization", prefix: "Bearer " } })
      .describe("Location of the key. Default: `Authorization: Bearer KEY`."),
  })
  .describe(
    "Requires an API key. Valid keys are removed from the request; expressions read the key's metadata as `apiKey`. A 401 carries a challenge with the scheme of `location`'s prefix, or `ApiKey`.",
  );

export type ApiKeyAuth = ConfigOf<typeof schema>;
export type ApiKey = ApiKeyAuth["keys"][number];

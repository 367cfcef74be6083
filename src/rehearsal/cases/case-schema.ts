/** The file of `tracegate check --expect`: requests, what is assumed about them, and what should happen to them. */
import { z } from "zod";
import { ERRORS, type ErrorCode } from "../../base/errors.ts";
import type { Fields } from "../../base/fields.ts";
import { ASSUMPTIONS, type AssumptionName, placed } from "../assumptions.ts";

const CODES = Object.keys(ERRORS) as [ErrorCode, ...ErrorCode[]];

const fields = z
  .record(z.string(), z.string().nullable())
  .describe("Values by name, not case-sensitive; of a repeated field joined by `, `. `null`: the field is absent.");

const request = z
  .strictObject({
    method: z.string().optional().describe("Default: `GET`, with a body `POST`."),
    url: z.string().describe("Such as `http://shop.example/cart`; `https` for a listener with TLS."),
    headers: z.record(z.string(), z.string()).optional().describe("Fields that the client sends, by name."),
    body: z.string().optional().describe("Sent as by curl's `-d`: as a form, unless `headers` has a `content-type`."),
    source: z.string().optional().describe("Address of the client. Default: `127.0.0.1`."),
    version: z
      .enum(["1.1", "2"])
      .optional()
      .describe("Of HTTP. Default: in plaintext `1.1`, with TLS what the gateway chooses of both."),
    certificate: z
      .string()
      .optional()
      .describe(
        "The client's certificate, with `key`: a file with PEM, relative to this file, or PEM. Without its key, write `assume: {clientCertificate: …}`.",
      ),
    key: z.string().optional().describe("The private key of `certificate`, in the same way."),
  })
  .meta({ id: "CaseRequest", description: "The request, as a client would send it." });

const sent = z
  .strictObject({
    path: z.string().optional().describe("With the query."),
    headers: fields.optional(),
  })
  .meta({ id: "SentRequest", description: "The request that the backend gets; of several attempts the last." });

const expectation = z
  .strictObject({
    listener: z.string().nullable().optional().describe("Its name. `null`: no listener accepts the request."),
    route: z
      .string()
      .nullable()
      .optional()
      .describe("Its name, after a `/` with what precedes it in the key, such as `default/cart`. `null`: no route."),
    backend: z
      .string()
      .nullable()
      .optional()
      .describe("Its name or `host:port`. `null`: the request reaches no backend."),
    status: z
      .int()
      .min(100)
      .max(599)
      .nullable()
      .optional()
      .describe("Of the response. `null`: the connection ends without one."),
    code: z.enum(CODES).nullable().optional().describe("Error of the gateway, see docs/errors.md. `null`: none."),
    sent: sent.nullable().optional().describe("`null`: the backend gets no request."),
    headers: fields.optional().describe("Fields of the response."),
  })
  .refine((expect) => Object.keys(expect).length > 0, {
    message: "expects nothing; write what should happen, such as status: 200",
  })
  .meta({ id: "Expectation", description: "Only what is named here is compared." });

/** The status or the whole of a response that a service sends, or what it adds to a request that it allows. */
const RESPONSES: readonly Fields[] = [
  { type: "integer", minimum: 200, maximum: 599 },
  {
    type: "object",
    additionalProperties: false,
    properties: {
      status: { type: "integer", minimum: 200, maximum: 599 },
      headers: { type: "object", additionalProperties: { type: "string" } },
      body: { type: "string" },
      metadata: { type: "object" },
    },
  },
];

/** What a credential says about the client, or whether it is valid. */
const CREDENTIAL: Fields = { anyOf: [{ enum: ["valid", "invalid"] }, { type: "object" }] };

/** Values that can be assumed, as JSON Schema; `readAssumptions` reads them, and the texts that command lines have for them. */
const VALUES: Readonly<Record<AssumptionName, Fields>> = {
  response: { anyOf: [{ enum: ["refused", "reset", "timeout"] }, ...RESPONSES] },
  endpoints: {
    anyOf: [
      { enum: ["healthy", "unhealthy", "none"] },
      { type: "object", minProperties: 1, additionalProperties: { enum: ["healthy", "unhealthy"] } },
    ],
  },
  backend: { type: "string", minLength: 1 },
  clientCertificate: { type: "string", minLength: 1 },
  networkExtAuthz: { enum: ["allow", "deny"] },
  extAuthz: { anyOf: [{ enum: ["allow", "deny"] }, ...RESPONSES] },
  extProc: { anyOf: [{ enum: ["allow", "fail"] }, ...RESPONSES] },
  remoteRateLimit: { enum: ["under", "over"] },
  jwt: CREDENTIAL,
  oidc: CREDENTIAL,
  basicAuth: CREDENTIAL,
  apiKey: CREDENTIAL,
  body: {},
  time: { type: "string", pattern: "^\\d{4}-\\d\\d-\\d\\dT" },
  random: { type: "number", minimum: 0, exclusiveMaximum: 1 },
};

const NAMES = Object.keys(ASSUMPTIONS) as AssumptionName[];

// `readAssumptions` knows the names, with what is meant by one that does not exist.
const assumeSchema = z.record(z.string(), z.unknown()).meta({
  id: "Assumptions",
  properties: Object.fromEntries(
    NAMES.flatMap((name) => {
      const { about, otherwise, values, places = [] } = ASSUMPTIONS[name];
      const ways = values.map((value) => `\`${value}\``).join(" or ");
      const here = { ...VALUES[name], description: `As \`${name}\`, but only at this place.` };
      return [
        [name, { ...VALUES[name], description: `About ${about}. Without it: ${otherwise}. Write ${ways}.` }],
        ...(typeof places === "string" ? [] : places).map((place) => [placed(name, place), here]),
      ];
    }),
  ),
  patternProperties: Object.fromEntries(
    NAMES.filter((name) => typeof ASSUMPTIONS[name].places === "string").map((name) => [
      `^${placed(name, ".+")}$`,
      VALUES[name],
    ]),
  ),
  additionalProperties: false,
});

const testCase = z
  .strictObject({
    name: z.string().min(1).describe("What the case shows; each case has its own."),
    request,
    assume: assumeSchema
      .optional()
      .describe("What the gateway cannot know in advance, such as `extAuthz: deny`; see docs/explain.md."),
    expect: expectation,
  })
  .meta({ id: "Case" });

/** A file of cases. */
export const caseFile = z.strictObject({ cases: z.array(testCase).min(1) }).meta({
  title: "tracegate cases",
  description: "Requests and what a configuration should do with them, for tracegate check --expect.",
});

export type TestCase = z.output<typeof testCase>;
export type Expectation = z.output<typeof expectation>;

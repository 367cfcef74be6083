/** The file of `tracegate check --expect`: requests, what is assumed about them, and what should happen to them. */
import { z } from "zod";
import { ERRORS, type ErrorCode } from "../../base/errors.ts";
import { ASSUMPTIONS } from "../assumptions.ts";

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

// Only names; `readAssumptions` reads the values. Not beside the table, which command lines load, as zod takes long to.
const assumeSchema = z
  .strictObject(
    Object.fromEntries(
      Object.entries(ASSUMPTIONS).flatMap(([name, { about, otherwise, values, places = [] }]) => {
        const ways = values.map((value) => `\`${value}\``).join(" or ");
        const placed =
          places === "routes"
            ? []
            : places.map((place) => [
                `${name}@${place}`,
                z.unknown().optional().describe(`As \`${name}\`, but only at this place.`),
              ]);
        return [
          [name, z.unknown().optional().describe(`About ${about}. Without it: ${otherwise}. Write ${ways}.`)],
          ...placed,
        ];
      }),
    ),
  )
  .meta({ id: "Assumptions" });

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

/**
 * Measures one evaluation of small expressions against handwritten code and another implementation of CEL.
 * Run: node bench/cel.ts
 */
import { Environment } from "@marcbachmann/cel-js";
import { type Activation, CelEnvironment, STANDARD_ENVIRONMENT as cel, type Expression } from "../src/cel/index.ts";

const ITERATIONS = 300_000;
const ROUNDS = 7;

const HEADERS = [
  "user-agent",
  "Mozilla/5.0",
  "accept",
  "*/*",
  "accept-encoding",
  "gzip",
  "x-user",
  "admin",
  "cookie",
  "theme=dark; session=3f0c2b6e; lang=en",
];
const ACTIVATIONS: readonly Activation[] = ["/api/users", "/api/v2/items", "/index.html"].map((path) => ({
  request: {
    method: "GET",
    scheme: "http",
    authority: "a.example",
    path,
    search: "",
    version: "HTTP/1.1",
    headers: HEADERS,
  },
  source: { address: "10.1.2.3", port: 4711, rawAddress: "10.1.2.3", rawPort: 4711 },
  jwt: { sub: "alice", groups: ["dev", "ops"], nested: { level: 3 } },
}));

function headerOf({ headers }: NonNullable<Activation["request"]>, name: string): string | undefined {
  for (let i = 0; i < headers.length; i += 2) if (headers[i] === name) return headers[i + 1];
  return undefined;
}

interface Row {
  readonly text: string;
  /** The expression for the other implementation, where it lacks the same functions. */
  readonly other?: string;
  readonly byHand?: (activation: Activation) => boolean;
}

const ROWS: readonly Row[] = [
  {
    text: 'request.headers["x-user"] == "admin" && request.path.startsWith("/api")',
    byHand: ({ request }) =>
      request !== undefined && headerOf(request, "x-user") === "admin" && request.path.startsWith("/api"),
  },
  { text: 'request.path == "/api/users"', byHand: ({ request }) => request?.path === "/api/users" },
  { text: 'request.headers["x-absent"] == "1"' },
  { text: 'jwt.sub == "alice"' },
  { text: '"ops" in jwt.groups && jwt.nested.level >= 3' },
  { text: 'cidr("10.0.0.0/8").containsIP(source.address)', other: 'source.address.startsWith("10.")' },
  {
    text: 'request.headers.cookie("session") == "3f0c2b6e"',
    other: 'request.headers.cookie.contains("session=3f0c2b6e")',
  },
  { text: 'request.path.matches("^/api/")' },
  { text: 'request.path.matches("^/api/v[0-9]+/")' },
  { text: '["/a", "/b", "/api/users"].exists(p, request.path.startsWith(p))' },
  { text: '"user " + jwt.sub' },
];

/** Nanoseconds of the fastest round. */
function measure(run: (activation: Activation) => unknown, inputs: readonly Activation[] = ACTIVATIONS): number {
  let best = Number.POSITIVE_INFINITY;
  for (let round = 0; round < ROUNDS; round++) {
    const start = process.hrtime.bigint();
    for (let i = 0; i < ITERATIONS; i++) run(inputs[i % inputs.length] as Activation);
    best = Math.min(best, Number(process.hrtime.bigint() - start) / ITERATIONS);
  }
  return best;
}

/** The other implementation expects a Map for headers and bigints for integers; converted before the clock starts. */
const OTHER_INPUTS = ACTIVATIONS.map(({ request, ...rest }) => {
  const headers = new Map<string, string>();
  for (let i = 0; i < HEADERS.length; i += 2) headers.set(HEADERS[i] ?? "", HEADERS[i + 1] ?? "");
  return { ...rest, request: { ...request, headers } };
});
const other = new Environment()
  .registerVariable("request", "dyn")
  .registerVariable("source", "dyn")
  .registerVariable("jwt", "dyn");

function withOther(text: string): string {
  const program = other.parse(text);
  const run = (input: unknown): unknown => {
    try {
      return program(input as Record<string, unknown>);
    } catch {
      return false;
    }
  };
  return measure(run as (activation: Activation) => unknown, OTHER_INPUTS as unknown as readonly Activation[]).toFixed(
    0,
  );
}

const FAILED = (): boolean => false;

console.log("    own   cel-js  by hand  (ns)");
for (const row of ROWS) {
  const expression = cel.compileExpression(row.text, "request");
  // `"user " + jwt.sub` is no condition.
  const condition = expression.type === "string" ? undefined : cel.compileCondition(row.text, "request");
  const own = measure((activation) =>
    condition === undefined ? expression.evaluate(activation) : condition.matches(activation, FAILED),
  ).toFixed(0);
  const hand = row.byHand === undefined ? "-" : measure(row.byHand).toFixed(0);
  const cells = [own.padStart(7), withOther(row.other ?? row.text).padStart(8), hand.padStart(8)];
  console.log(`${cells.join(" ")}  ${row.text}${row.other === undefined ? "" : ` (cel-js: ${row.other})`}`);
}

/** The cost of calling a function that the configuration defines, on top of the same expression inline. */
const FUNCTIONS = CelEnvironment.defining(`
  internal() { request.headers["x-user"] == "admin" }
  this.under(prefix) { this.startsWith(prefix + "/") }
  joined(first, rest...) { first + rest.join(",") }
`);
const CALLS: readonly (readonly [call: string, inline: string])[] = [
  ["internal()", 'request.headers["x-user"] == "admin"'],
  ['request.path.under("/api")', 'request.path.startsWith("/api" + "/")'],
  ['joined("a", request.method, request.path)', '"a" + [request.method, request.path].join(",")'],
];
console.log("   call  without  (ns)");
for (const texts of CALLS) {
  const [call, inline] = texts.map((text) => FUNCTIONS.compileExpression(text, "request")) as [Expression, Expression];
  const cells = [call, inline].map((it) =>
    measure((activation) => it.evaluate(activation))
      .toFixed(0)
      .padStart(7),
  );
  console.log(`${cells.join("  ")}  ${call.text}`);
}

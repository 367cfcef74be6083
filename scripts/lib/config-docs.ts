import { configJsonSchema, type JsonSchema } from "./config-schema.ts";

const INTRO = `# Configuration

tracegate reads one YAML file (JSON is YAML too): \`tracegate -f gateway.yaml\`. Fields that it does not know are errors.
Editors complete and check files by [schema/config.json](../schema/config.json); name it in the first line:

\`\`\`yaml
# yaml-language-server: $schema=./schema/config.json
\`\`\`

Started without \`-f\` and \`-c\`, tracegate reads \`/config/config.yaml\` when there is a folder \`/config\`, as in a container, else
\`config.yaml\` in \`$XDG_CONFIG_HOME/tracegate\` or \`~/.config/tracegate\`; a file that is not there is
[created](../examples/default.yaml). In Kubernetes nothing is created: name a file, or set \`LOCAL_XDS_PATH\`. In an image,
\`TRACEGATE_ENV=container\` makes a \`/config\` that is not mounted an error.

This page is made from the same schema. [Examples](../examples) are complete files to start from.

## Environment variables

Before the file is parsed, \`$NAME\` and \`\${NAME}\` become the variable's value, \`\${NAME:-default}\` the default where it
is not set, and \`$$\` a dollar sign. A variable that is not set and has no default is an error. Lines that begin with \`#\`
are left alone. Some variables win over settings of the file: \`ADMIN_ADDR\`, \`STATS_ADDR\`, \`READINESS_ADDR\`,
\`WORKER_THREADS\`, \`IPV6_ENABLED\`, \`DNS_LOOKUP_FAMILY\`, \`CLUSTER_ID\`, \`NETWORK\`, \`CONNECTION_TERMINATION_DEADLINE\`,
\`CONNECTION_MIN_TERMINATION_DEADLINE\`; \`RUST_LOG\` over \`config.logging.level\`, \`LOG_FORMAT\` over
\`config.logging.format\`. \`TERMINATION_GRACE_PERIOD_SECONDS\` gives the default of \`config.connectionTerminationDeadline\`,
\`CPU_LIMIT\` that of \`config.workerThreads\`.

## Reload

tracegate follows its file and the files that it names, such as certificates and keys: written in place, replaced by a
rename, or swapped through a symbolic link as with a mounted ConfigMap. It compares what it has read with what is on
disk, so a change during the start or during another reload is not lost. SIGHUP reloads whether or not anything has
changed; the SIGHUP of a terminal that is closed ends the program as SIGTERM does.

A new version is checked and built as a whole beside the old one, then takes over without a request lost. When anything
is wrong with it, the old one goes on serving; the log, the metric \`tracegate_config_synchronized\` (0) and
\`GET /config/status\` of the admin server say so and why. When the reason is not in the files, such as a port in use or a
URL that cannot be fetched, the same version is tried again after 1 s, 2 s, 4 s, up to every 30 s. A version during
which workers died twice is tried four times only. A missing file is read as soon as it is there.

| \`GET /config/status\` | |
|---|---|
| \`generation\`, \`appliedAt\` | counts the versions that came into force, and when the last one did |
| \`loadedAt\` | when the files were last read |
| \`hash\` | SHA-256 of what is in force: the text of the configuration, then each file that it names; \`sha256sum gateway.yaml\` when it names none |
| \`diskDiffers\` | whether anything else is in these files now, or one of them is missing or cannot be read |
| \`lastError\` | why the newest version was refused; null when it is in force |
| \`nextRetryAt\` | when it is tried again without a change; null when it is not |
| \`synchronized\` | the newest version is in force, and it is what is on disk |
| \`restartRequired\` | fields whose new values only a restart puts in force |

\`config\` is read once, at the start, but for its [\`customFunctions\`](expressions.md#functions-of-your-own) and
\`tracing\`. A reload that changes other fields of it applies the rest of the file, and names these fields in the log and in
\`restartRequired\`; \`tracegate check\` names those that a file sets. Standard input (\`-f -\`) and text on the command line
(\`-c\`) are never read again.

## Certificates made on demand

With \`tls.mode: dynamicCa\`, \`cert\` and \`key\` are those of a CA. Each name that a client asks for (SNI), and that the
hostname of the listener fits, gets a certificate of its own that the CA signs:

\`\`\`yaml
gateways:
  inside:
    port: 8443
    listeners:
      - hostname: "*.dev.example"
        tls: { mode: dynamicCa, cert: ca.pem, key: ca.key }
\`\`\`

- \`cert\` holds the CA's certificate first, then those above it, if any: clients get all of them. \`key\` is RSA, or ECDSA on
  P-256 or P-384. A CA that has expired, or that is none, is an error; one that expires later makes no more certificates,
  and the log says so.
- The certificates have ECDSA keys on P-256; \`cipherSuites\` for TLS 1.2 need \`TLS_ECDHE_ECDSA_…\`. They are valid for 24 hours,
  and from an hour before they were made, but never longer than the CA's.
- Every worker keeps those of the last 256 names of a listener for five minutes, and makes others after that or after a
  reload. \`DYNAMIC_CA_CERT_CACHE_CAPACITY\` and \`DYNAMIC_CA_CERT_CACHE_TTL\` (seconds, or a duration such as \`10m\`, up to 12
  hours) set other limits.
- At level \`debug\` the log tells of every certificate that is made: listener, name, serial number and end.
- A client that names no server, or an address, or what is no DNS name, is cut off; the log says why.
- Who has the CA's key can be any host to those who trust the CA: make one for this purpose, with name constraints where
  you can, and give the listener a hostname. With \`*\` it signs for every name that is asked for.

## Check

\`tracegate check -f FILE\` (or \`-f -\` for standard input) does all that a start does short of opening ports, and prints
every problem at its place. Exit code 0: valid, warnings allowed; 1: not valid or not readable; 2: wrong usage.

\`\`\`text
gateway.yaml:8:26: error: binds[0].listeners[0].routes[0].backends[0].backend: unknown backend reference /paymants; did you mean "/payments"?
                - backend: /paymants
                           ^
\`\`\`

With \`--json\` it prints one object: \`ok\`; \`diagnostics\`, a list of \`severity\` (\`error\`, \`warning\` or \`note\`), \`file\`, \`line\` and
\`column\` (from 1; 0 when the problem has no place in the text), \`path\`, \`message\` and, where there are such, \`expected\`,
\`suggestion\` and \`source\`, the line itself; and when it is valid \`summary\` with the numbers of \`binds\`, \`listeners\`,
\`routes\` and \`backends\`. \`tracegate -f FILE --validate-only\` prints problems to standard error, or
\`Configuration is valid!\` to standard output.

## Settings that have moved

\`config.logging.filter\` and \`config.logging.fields\` are now \`frontendPolicies.accessLog\`, \`config.tracing\` is
\`frontendPolicies.tracing\`. \`tracegate migrate -f FILE\` rewrites a file that has the old ones, in place: comments and
variables stay, JSON stays JSON, how comments line up does not. When something cannot be moved, because both places say it for
example, that is told with its line, exit code 1, and the file stays as it is.

## A gateway for one command

\`tracegate oneshot -f FILE -- COMMAND...\` (or \`-c CONFIG\`) starts a gateway, runs the command once it serves, stops the
gateway when the command has ended, and exits with the command's code: 128 and the signal's number when a signal ended it, 127
when there is no such program, 1 when the gateway does not start. Standard input and output are the command's; the gateway's
log goes to standard error, or with \`--output FILE\` to a file, which is emptied first. Signals go on to the command. Killed,
even by SIGKILL, it leaves no gateway behind: the gateway notices at once that nobody waits for it, and stops.

\`\`\`sh
tracegate oneshot -f gateway.yaml --output gateway.log -- npm test
\`\`\`
`;

const FIRST = "Top level";

interface Section {
  readonly title: string;
  readonly schema: JsonSchema;
}

/** docs/configuration.md: how configuration works, and a table of fields for each object of the schema. */
export function configReference(): string {
  const root = configJsonSchema();
  const defs = root.$defs ?? {};
  const sections = [...nested({ title: FIRST, schema: root })];
  for (const [title, schema] of Object.entries(defs)) sections.push(...nested({ title, schema }));
  return `${INTRO}\n${sections.map((section) => render(section, defs)).join("\n")}`;
}

/** The sections of one schema that stands alone, under its name. */
export function schemaSections(title: string, schema: JsonSchema): string {
  const { description: _, ...rest } = schema;
  const defs = schema.$defs ?? {};
  const sections = [...nested({ title, schema: rest })];
  for (const [name, each] of Object.entries(defs)) sections.push(...nested({ title: name, schema: each }));
  return sections.map((section) => render(section, defs)).join("\n");
}

/** The object itself, then those that it holds without a name of their own, by their path. */
function* nested({ title, schema }: Section): Generator<Section> {
  yield { title, schema };
  for (const [name, field] of Object.entries(schema.properties ?? {})) {
    const object = field.items ?? field;
    const path = pathOf(title, name);
    if (object.properties !== undefined) yield* nested({ title: path, schema: object });
    else if (object.anyOf?.some((each) => each.properties !== undefined)) yield { title: path, schema: object };
  }
}

function pathOf(title: string, name: string): string {
  return title === FIRST ? name : `${title}.${name}`;
}

function render({ title, schema }: Section, defs: Readonly<Record<string, JsonSchema>>): string {
  const heading = `## ${/^[A-Z]/.test(title) && !title.includes(".") ? title : `\`${title}\``}\n`;
  const about = schema.description === undefined ? "" : `\n${schema.description}\n`;
  const alternatives = schema.anyOf?.map((each) => `- ${alternative(each)}`) ?? [];
  if (alternatives.length > 0) return `${heading}${about}\nOne of:\n\n${alternatives.join("\n")}\n`;
  const fields = Object.entries(schema.properties ?? {});
  if (fields.length === 0) return `${heading}${about}`;
  const rows = fields.map(([name, field]) => {
    const fallback = schema.required?.includes(name) ? "required" : defaultOf(field);
    return `| \`${name}\` | ${typeOf(field, pathOf(title, name))} | ${fallback} | ${cell(field.description ?? defs[nameOf(field) ?? ""]?.description ?? "")} |`;
  });
  return `${heading}${about}\n| Field | Type | Default | Meaning |\n|---|---|---|---|\n${rows.join("\n")}\n`;
}

function alternative(schema: JsonSchema): string {
  const [field] = Object.entries(schema.properties ?? {});
  const about = ({ description }: JsonSchema): string => (description === undefined ? "" : `: ${description}`);
  if (field === undefined) return `${typeOf(schema, "")}${about(schema)}`;
  return `\`${field[0]}\` (${typeOf(field[1], "")})${about(field[1])}`;
}

/** `path` is that of the section about the object that it may be; empty: there is none. */
function typeOf(schema: JsonSchema, path: string): string {
  const reference = nameOf(schema);
  if (reference !== undefined) return link(reference, reference);
  if (schema.anyOf !== undefined) return [...new Set(schema.anyOf.map((each) => typeOf(each, path)))].join(" or ");
  if (schema.enum !== undefined) return schema.enum.map((value) => `\`${String(value)}\``).join(", ");
  if (schema.const !== undefined) return `\`${String(schema.const)}\``;
  if (schema.items !== undefined) return `list of ${typeOf(schema.items, path)}`;
  if (schema.properties !== undefined) {
    if (Object.keys(schema.properties).length === 0) return "`{}`";
    return path === "" ? "object" : link("object", path);
  }
  if (typeof schema.additionalProperties === "object") return `map to ${typeOf(schema.additionalProperties, path)}`;
  if (schema.type === "object") return "`{}`";
  if (schema.type === "integer" || schema.type === "number") return `number${range(schema)}`;
  return schema.title ?? schema.type ?? "any";
}

/** The section that a schema refers to. */
function nameOf({ $ref }: JsonSchema): string | undefined {
  return $ref?.replace("#/$defs/", "");
}

function range({ minimum, maximum }: JsonSchema): string {
  const least = minimum === undefined || minimum === Number.MIN_SAFE_INTEGER ? undefined : minimum;
  const most = maximum === undefined || maximum === Number.MAX_SAFE_INTEGER ? undefined : maximum;
  if (least !== undefined && most !== undefined) return ` ${least}–${most}`;
  return least !== undefined ? ` ≥ ${least}` : "";
}

/** GitHub's anchors: lower case, without punctuation. */
function link(text: string, section: string): string {
  return `[${text}](#${section.toLowerCase().replace(/[^\w-]/g, "")})`;
}

function defaultOf(schema: JsonSchema): string {
  const { default: value } = schema;
  if (value === undefined || (typeof value === "object" && value !== null)) return "";
  return value === "" ? "empty" : `\`${String(value)}\``;
}

function cell(text: string): string {
  return text.replaceAll("|", "\\|").replaceAll("\n", " ");
}

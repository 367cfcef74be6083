import { messageOf } from "../../base/errors.ts";
import { isReadOnce, readText } from "../../config/parse/inputs.ts";
import { formatDiagnostics } from "../../translation/problems/diagnostics.ts";
import type { Converted } from "../convert/converted.ts";
import { write, writeJson } from "../runner/context.ts";
import { type Command, defineCommand, type Group } from "../runner/define-command.ts";
import { CliError } from "../runner/errors.ts";

const FORMS = ["file", "gateway-api"];

interface Source {
  readonly name: string;
  readonly summary: string;
  readonly description: readonly string[];
  readonly file: string;
  /** What it is written as, unless `--to` says otherwise. */
  readonly form: "file" | "gateway-api";
  /** `path` undefined: the text is from standard input. @throws SyntaxProblem */
  load(): Promise<(name: string, text: string, path: string | undefined) => Converted>;
}

const SOURCES: readonly Source[] = [
  {
    name: "caddy",
    summary: "Convert a Caddyfile",
    description: [
      "Reads a Caddyfile and the files that it imports from its folder. Directives count in the order of Caddy; what they say about certificates becomes tls.acme.",
    ],
    file: "Caddyfile",
    form: "file",
    load: async () => (await import("../convert/caddy/convert.ts")).convertCaddy,
  },
  {
    name: "ingress",
    summary: "Convert Ingresses, with annotations of ingress-nginx",
    description: [
      "Reads objects of Kubernetes in YAML or JSON, as kubectl get ingress,service -A -o yaml prints them. Services are needed where Ingresses name their ports.",
    ],
    file: "ingresses.yaml",
    form: "gateway-api",
    load: async () => (await import("../convert/ingress/convert.ts")).convertIngress,
  },
  {
    name: "nginx",
    summary: "Convert a configuration of nginx",
    description: [
      "Reads the http block with its servers, locations and upstreams, and the files that it includes from the folder of the file. A file of conf.d, with servers only, can be converted too.",
    ],
    file: "nginx.conf",
    form: "file",
    load: async () => (await import("../convert/nginx/convert.ts")).convertNginx,
  },
];

/** `convert`, of both programs. */
export const convertGroup: Group = {
  name: "convert",
  summary: "Convert the configuration of another gateway",
  description: [
    "Writes the result to standard output, and to standard error what has no equivalent, with its place and what to do instead.",
  ],
  commands: SOURCES.map(commandOf),
};

function commandOf({ name, summary, description, file, form, load }: Source): Command {
  return defineCommand({
    name,
    summary,
    description: [
      ...description,
      "Exits with 0, also if there are findings; --strict exits with 1 if requests may be served differently. Read the findings before you use the result.",
    ],
    argument: { name: "file", summary: "The file; - reads standard input", required: true, completes: "file" },
    options: {
      to: {
        type: "text",
        value: "form",
        choices: FORMS,
        default: form,
        invalid: (value) => `the form "${value}" is not known; use ${FORMS.join(" or ")}`,
        summary: "Write a configuration file, or objects of the Gateway API for a cluster",
      },
      strict: { type: "switch", summary: "Exit with 1 if there are errors or warnings among the findings" },
    },
    examples: [
      { does: "As a file of tracegate", run: `convert ${name} ${file} --to file > gateway.yaml` },
      { does: "As objects of the Gateway API", run: `convert ${name} ${file} --to gateway-api > objects.yaml` },
    ],
    async run({ argument = "-", options: { to, strict } }, context) {
      const { text, name: shown } = read(argument);
      const [convert, { Findings, SyntaxProblem }] = await Promise.all([load(), import("../convert/findings.ts")]);
      let converted: Converted;
      try {
        converted = convert(shown, text, isReadOnce(argument) ? undefined : argument);
      } catch (error) {
        if (!(error instanceof SyntaxProblem)) throw error;
        const { file, line, column } = error.place;
        throw new CliError("failure", `${file}:${line}:${column}: ${error.message}`);
      }
      const all = new Findings(converted.findings);
      const written =
        to === "gateway-api"
          ? (await import("../convert/gateway-api/write.ts")).writeGatewayApi(converted, all)
          : (await import("../convert/write-file.ts")).writeFile(converted, all);
      const findings = all.sorted();
      if (context.json) await writeJson(context, { configuration: written, findings });
      else {
        // The result is a file, whose text must not change.
        await write(context.stdout, Buffer.from(written));
        for (const each of findings) await write(context.stderr, formatDiagnostics([{ path: "", ...each }]));
      }
      return strict && findings.some(({ severity }) => severity !== "note") ? 1 : 0;
    },
  });
}

/** One file, whatever its name is. `-` is standard input. Throws CliError. */
function read(path: string): { readonly text: string; readonly name: string } {
  try {
    return { text: readText(path), name: path === "-" ? "standard input" : path };
  } catch (error) {
    throw new CliError("failure", `cannot read ${path}: ${messageOf(error)}`);
  }
}

/**
 * Writes test/helpers/envoy/descriptors.json: the fields of the messages in proto/ as Envoy publishes
 * them, from the descriptors in its Go module. Needs the go command, which downloads and verifies modules; run it after
 * adding a message: node scripts/envoy-descriptors.ts
 */
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { fromBinary } from "@bufbuild/protobuf";
import {
  type DescriptorProto,
  type FieldDescriptorProto,
  FieldDescriptorProto_Label,
  FieldDescriptorProto_Type,
  FileDescriptorProtoSchema,
  file_google_protobuf_duration,
  file_google_protobuf_timestamp,
  file_google_protobuf_wrappers,
} from "@bufbuild/protobuf/wkt";
import { generatedMessages } from "../test/helpers/envoy/generated.ts";
import { allTables } from "../test/helpers/envoy/tables.ts";

const ENVOY = "github.com/envoyproxy/go-control-plane/envoy@v1.40.0";
/** The checksum in the form of go.sum. */
const ENVOY_SUM = "h1:G4dcl8KE/HVPnZ25BBdvGZWi8JjyeBfQSvm95U5P1Qc=";
const TARGET = fileURLToPath(new URL("../test/helpers/envoy/descriptors.json", import.meta.url));

type Field = readonly [number: number, kind: string, shape: "one" | "list" | "map"];

/** Downloads a module; the folder that it is in, and its checksum. */
function download(module: string): { readonly Dir: string; readonly Sum: string } {
  const { status, stdout, stderr, error } = spawnSync("go", ["mod", "download", "-json", module], { encoding: "utf8" });
  if (status !== 0) throw new Error(`cannot get ${module} with Go: ${error?.message ?? (stderr || stdout)}`);
  return JSON.parse(stdout) as { Dir: string; Sum: string };
}

/** The module of the messages that Envoy shares with all gRPC services, in the version that Envoy's module requires. */
function commonModule(envoy: string): string {
  const [, name, version] =
    /^\s+(\S+\/genproto\/googleapis\/rpc) (\S+)/m.exec(readFileSync(`${envoy}/go.mod`, "utf8")) ?? [];
  return `${name}@${version}`;
}

function* messagesIn(folder: string): Generator<readonly [name: string, message: DescriptorProto]> {
  for (const file of readdirSync(folder, { recursive: true, encoding: "utf8" })) {
    if (!file.endsWith(".pb.go")) continue;
    const bytes = descriptorIn(readFileSync(`${folder}/${file}`, "utf8"));
    const { package: inside, messageType } = fromBinary(FileDescriptorProtoSchema, bytes);
    yield* nested(inside, messageType);
  }
}

/** Generated code holds its descriptor as one string of many quoted pieces; code of older generators, as a list of bytes. */
function descriptorIn(source: string): Uint8Array {
  const [, pieces] = /^const \w+_rawDesc = ((?:"(?:\\.|[^"\\\n])*"(?: \+\n\t)?)+)$/m.exec(source) ?? [];
  if (pieces !== undefined)
    return Buffer.concat([...pieces.matchAll(/"((?:\\.|[^"\\\n])*)"/g)].map(([, text = ""]) => unquote(text)));
  const [, list = ""] = /^var \w+_rawDesc = \[\]byte\{([^}]*)\}$/m.exec(source) ?? [];
  return Uint8Array.from(list.match(/0x\w\w/g) ?? [], Number);
}

function* nested(
  scope: string,
  messages: readonly DescriptorProto[],
): Generator<readonly [name: string, message: DescriptorProto]> {
  for (const message of messages) {
    const name = `${scope}.${message.name}`;
    yield [name, message];
    yield* nested(name, message.nestedType);
  }
}

const ESCAPES: Readonly<Record<string, string>> = { a: "\x07", b: "\b", f: "\f", n: "\n", r: "\r", t: "\t", v: "\v" };

/** The bytes of a string literal of Go. */
function unquote(text: string): Buffer {
  const parts = text.match(/\\x[0-9a-f]{2}|\\u[0-9a-f]{4}|\\U[0-9a-f]{8}|\\.|[^\\]+/g) ?? [];
  return Buffer.concat(
    parts.map((part) => {
      if (part.startsWith("\\x")) return Buffer.from(part.slice(2), "hex");
      if (/^\\[uU]/.test(part)) return Buffer.from(String.fromCodePoint(Number.parseInt(part.slice(2), 16)));
      return Buffer.from(part.startsWith("\\") ? (ESCAPES[part.slice(1)] ?? part.slice(1)) : part);
    }),
  );
}

/** Fields by name, in the order of their names. */
function fieldsOf({ field, nestedType }: DescriptorProto): Record<string, Field> {
  const byName = field.toSorted((a, b) => (a.name < b.name ? -1 : 1));
  return Object.fromEntries(
    byName.map((each): [string, Field] => {
      const entry = nestedType.find(({ name, options }) => options?.mapEntry && each.typeName.endsWith(`.${name}`));
      const value = entry?.field.find(({ name }) => name === "value");
      if (value !== undefined) return [each.name, [each.number, kindOf(value), "map"]];
      const list = each.label === FieldDescriptorProto_Label.REPEATED;
      return [each.name, [each.number, kindOf(each), list ? "list" : "one"]];
    }),
  );
}

function kindOf({ type, typeName }: FieldDescriptorProto): string {
  return type === FieldDescriptorProto_Type.MESSAGE
    ? typeName.replace(/^\./, "")
    : (FieldDescriptorProto_Type[type] ?? "").toLowerCase();
}

const envoy = download(ENVOY);
if (envoy.Sum !== ENVOY_SUM) throw new Error(`${ENVOY} has the checksum ${envoy.Sum}, not ${ENVOY_SUM}`);
const common = download(commonModule(envoy.Dir));
const known = new Map([
  ...messagesIn(envoy.Dir),
  ...messagesIn(`${common.Dir}/status`),
  ...messagesIn(`${common.Dir}/errdetails`),
  ...[file_google_protobuf_duration, file_google_protobuf_timestamp, file_google_protobuf_wrappers].flatMap(
    ({ proto }) => [...nested(proto.package, proto.messageType)],
  ),
]);
// The messages of OTLP are compared with what OpenTelemetry publishes, and some are our own.
const generated = (await generatedMessages())
  .map(({ typeName }) => typeName)
  .filter((name) => !/^(opentelemetry|tracegate)\./.test(name));
const lines = [...new Set([...generated, ...allTables().keys()])].sort().map((name) => {
  const message = known.get(name);
  if (message === undefined) throw new Error(`Envoy has no message ${name}`);
  return `  ${JSON.stringify(name)}: ${JSON.stringify(fieldsOf(message))}`;
});
writeFileSync(TARGET, `{\n${lines.join(",\n")}\n}\n`);

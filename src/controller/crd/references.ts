/**
 * What a cluster has in place of files and of services by name. A policy in a cluster is a policy of the configuration file, except
 * that texts are in Secrets and ConfigMaps of its namespace, and services are named by `backendRef`. `toFileSyntax` rewrites both to
 * the syntax of the file, so that one schema and one translation serve both.
 */
import { z } from "zod";
import type { Path } from "../../base/paths.ts";
import type { Report } from "../../translation/problems/problem.ts";

const textReference = z.strictObject({
  name: z.string().min(1).max(253).describe("Name of the object, in the namespace of the policy."),
  key: z.string().min(1).max(253).describe("Key in its data."),
});

export const backendRef = z.strictObject({
  group: z.enum(["", "tracegate.dev"]).optional().describe("Group. Default: that of `kind`."),
  kind: z.enum(["Service", "TracegateBackend"]).default("Service").describe("`Service` or `TracegateBackend`."),
  name: z.string().min(1).max(253).describe("Name of the backend."),
  namespace: z
    .string()
    .min(1)
    .max(63)
    .optional()
    .describe("Namespace of the backend; another one needs a ReferenceGrant. Default: that of the policy."),
  port: z.int().min(1).max(65535).optional().describe("Port of the Service; required for Services."),
});

export type BackendRef = z.output<typeof backendRef>;

/** The objects that texts can be in, by the field that names one. */
export const TEXT_KINDS = { secretKeyRef: "Secret", configMapKeyRef: "ConfigMap" } as const;
type TextKind = (typeof TEXT_KINDS)[keyof typeof TEXT_KINDS];

/** Where a text is. */
export interface TextPlace {
  readonly kind: TextKind;
  readonly namespace: string;
  readonly name: string;
  readonly key: string;
}

/**
 * File names of texts in the cluster begin with this. Users cannot write it, so they cannot name a text that they may not read:
 * neither a file of the controller nor a Secret of another namespace.
 */
const MARK = "\0";

/** The file name that represents a text in the cluster. */
function nameOfText({ kind, namespace, name, key }: TextPlace): string {
  return `${MARK}${kind}/${namespace}/${name}/${key}`;
}

/** What a file name represents: a text, where it is, or undefined for a name that users have written. */
export function textOfName(name: string): string | TextPlace | undefined {
  if (!name.startsWith(MARK)) return undefined;
  if (name.startsWith(INLINE)) return name.slice(INLINE.length);
  const [kind, namespace = "", object = "", ...key] = name.slice(MARK.length).split("/");
  return { kind: kind === "Secret" ? "Secret" : "ConfigMap", namespace, name: object, key: key.join("/") };
}

const INLINE = `${MARK}text:`;

/** What `toFileSyntax` needs to know of the cluster. */
export interface ClusterNames {
  readonly namespace: string;
  /** The text itself, for fields that take no file. What cannot be read is reported at `path`. */
  readonly text: (place: TextPlace, path: Path) => string | undefined;
  /** `service` or `backend` of the file syntax; undefined if there is no such backend, which is reported at `path`. */
  readonly backend: (ref: BackendRef, path: Path) => Readonly<Record<string, unknown>> | undefined;
}

/** How a text is written at a place. */
type TextSyntax =
  /** A text, or `{file}`. */
  | "source"
  /** The name of a file. */
  | "fileName"
  /** A text only. */
  | "plain";

/** Fields of `backendTLS` with PEM, which are names of files in the file. */
export const TLS_FILES: readonly unknown[] = ["cert", "key", "root"];

function syntaxAt(path: Path): TextSyntax {
  const field = path.at(-1);
  if (path.at(-2) === "backendTLS" && TLS_FILES.includes(field)) return "fileName";
  if (path.includes("oidc") && field === "clientSecret") return "plain";
  return path.includes("apiKey") && field === "key" ? "plain" : "source";
}

/** Values of any shape, which belong to users. */
function isOpaque(path: Path): boolean {
  return (
    (path.includes("apiKey") && path.at(-1) === "metadata") || (path.at(-2) === "jwtSign" && path.at(-1) === "claims")
  );
}

/** Rewrites the value of a policy at `path` to the syntax of the configuration file. Problems are reported. */
export function toFileSyntax(value: unknown, path: Path, names: ClusterNames, report: Report): unknown {
  if (isOpaque(path)) return value;
  if (typeof value === "string") return rewriteText(value, path, report);
  if (Array.isArray(value)) return value.map((each, i) => toFileSyntax(each, [...path, i], names, report));
  if (typeof value !== "object" || value === null) return value;
  const fields = value as Readonly<Record<string, unknown>>;
  const kind = textField(fields);
  if (kind !== undefined) return rewriteTextReference(fields[kind], kind, path, names, report);
  const { backendRef: ref, service, ...others } = fields;
  if (typeof service === "object" && service !== null) {
    // Otherwise a policy could call a Service of another namespace without a ReferenceGrant.
    report([...path, "service"], { message: "names an entry of a configuration file", expected: "backendRef" });
    return { ...others, ...NO_BACKEND };
  }
  if (service !== undefined) Object.assign(others, { service });
  const rest = Object.fromEntries(
    Object.entries(others).map(([name, each]) => [name, toFileSyntax(each, [...path, name], names, report)]),
  );
  if (typeof ref !== "object" || ref === null) return ref === undefined ? rest : { ...rest, backendRef: ref };
  return { ...rest, ...rewriteBackendRef(ref, fields, path, names, report) };
}

function rewriteText(text: string, path: Path, report: Report): string {
  if (text.includes(MARK)) {
    report(path, { message: "has a NUL character; remove it" });
    return "";
  }
  return syntaxAt(path) === "fileName" ? INLINE + text : text;
}

/** The field that names a text, if the object has nothing else. */
function textField(fields: Readonly<Record<string, unknown>>): keyof typeof TEXT_KINDS | undefined {
  const [name, ...others] = Object.keys(fields);
  if ((name !== "secretKeyRef" && name !== "configMapKeyRef") || others.length > 0) return undefined;
  return typeof fields[name] === "object" ? name : undefined;
}

function rewriteTextReference(
  reference: unknown,
  field: keyof typeof TEXT_KINDS,
  path: Path,
  names: ClusterNames,
  report: Report,
): unknown {
  const at = [...path, field];
  const parsed = textReference.safeParse(reference);
  if (!parsed.success) {
    report(at, { message: "is not a reference", expected: "an object with name and key" });
    return "";
  }
  const place = { kind: TEXT_KINDS[field], namespace: names.namespace, ...parsed.data };
  const syntax = syntaxAt(path);
  if (syntax === "source") return { file: nameOfText(place) };
  return syntax === "fileName" ? nameOfText(place) : names.text(place, at)?.trim();
}

function rewriteBackendRef(
  ref: object,
  fields: Readonly<Record<string, unknown>>,
  path: Path,
  names: ClusterNames,
  report: Report,
): Readonly<Record<string, unknown>> {
  const at = [...path, "backendRef"];
  if (fields.host !== undefined) report(path, { message: "only one of host, backendRef may be set" });
  const parsed = backendRef.safeParse(ref);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    const field = issue?.path ?? [];
    report([...at, ...field], { message: issue?.message ?? "is not a reference" });
    return NO_BACKEND;
  }
  return names.backend(parsed.data, at) ?? NO_BACKEND;
}

/** Fails closed: calls of a backend that does not exist, or may not be used, fail. */
export const NO_BACKEND = { backend: "/" };

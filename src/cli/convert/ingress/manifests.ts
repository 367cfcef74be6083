/** Ingresses and Services in a text, with the places of their fields. */
import { type Document, isMap, isNode, isPair, isScalar, isSeq, LineCounter, parseAllDocuments } from "yaml";
import { z } from "zod";
import { fieldsOf } from "../../../base/fields.ts";
import type { Path } from "../../../base/paths.ts";
import type { IngressSpec } from "../../../kube/ingress.ts";
import type { Place } from "../converted.ts";
import { type Findings, SyntaxProblem } from "../findings.ts";

export interface IngressManifest {
  readonly namespace: string;
  readonly name: string;
  readonly annotations: Readonly<Record<string, string>>;
  readonly spec: IngressSpec;
  /** The place of a field, or of the nearest one around it that is written. */
  readonly at: (path: Path) => Place;
}

interface Manifests {
  /** Those that take precedence come first. */
  readonly ingresses: readonly IngressManifest[];
  /** The number of a port of a Service by its name; undefined: it is not in the input. */
  readonly portOf: (namespace: string, service: string, port: string) => number | undefined;
}

const metadata = z.looseObject({
  name: z.string().min(1),
  namespace: z.string().min(1).default("default"),
  creationTimestamp: z.unknown().optional(),
  annotations: z.record(z.string(), z.string("is not a text; put it into quotes")).optional(),
});

const backend = z.looseObject({
  service: z
    .looseObject({
      name: z.string().min(1),
      port: z.looseObject({ name: z.string().optional(), number: z.int().optional() }).optional(),
    })
    .optional(),
  resource: z.looseObject({ apiGroup: z.string().optional(), kind: z.string(), name: z.string() }).optional(),
});

const ingress = z.looseObject({
  metadata,
  spec: z.looseObject({
    ingressClassName: z.string().optional(),
    defaultBackend: backend.optional(),
    tls: z
      .array(z.looseObject({ hosts: z.array(z.string()).optional(), secretName: z.string().optional() }))
      .optional(),
    rules: z
      .array(
        z.looseObject({
          host: z.string().optional(),
          http: z
            .looseObject({
              paths: z.array(
                z.looseObject({
                  path: z.string().startsWith("/", "must begin with /").optional(),
                  pathType: z.enum(["Exact", "Prefix", "ImplementationSpecific"]),
                  backend,
                }),
              ),
            })
            .optional(),
        }),
      )
      .optional(),
  }),
});

const service = z.looseObject({
  metadata,
  spec: z.looseObject({
    ports: z.array(z.looseObject({ name: z.string().optional(), port: z.int() })).optional(),
  }),
});

/** @throws SyntaxProblem */
export function readManifests(file: string, text: string, findings: Findings): Manifests {
  const found: { readonly created: number; readonly manifest: IngressManifest }[] = [];
  const ports = new Map<string, number>();
  const lines = new LineCounter();
  const place = (offset: number): Place => {
    const { line, col } = lines.linePos(offset);
    return { file, line, column: col };
  };
  for (const document of parseAllDocuments(text, { lineCounter: lines, prettyErrors: false })) {
    const [error] = document.errors;
    if (error !== undefined) throw new SyntaxProblem(place(error.pos[0]), error.message);
    const root = document.toJS({ maxAliasCount: 100 }) as unknown;
    const { kind, items } = fieldsOf(root);
    const isList = typeof kind === "string" && kind.endsWith("List") && Array.isArray(items);
    const objects = isList ? items.map((each, i) => [each, ["items", i]] as const) : [[root, []] as const];
    for (const [object, path] of objects) {
      if (object === null || object === undefined) continue;
      const at = (own: Path): Place => place(offsetOf(document, [...path, ...own]));
      const { apiVersion, kind } = fieldsOf(object);
      if (kind === "Service") {
        const { metadata, spec } = parsed(service, object, at);
        for (const { name, port } of spec.ports ?? [])
          if (name !== undefined) ports.set(`${metadata.namespace}/${metadata.name}/${name}`, port);
      } else if (kind !== "Ingress")
        findings.find("note", at([]), `${typeof kind === "string" ? kind : "what is no object"} is not read`);
      else if (apiVersion !== "networking.k8s.io/v1")
        findings.find(
          "error",
          at(["apiVersion"]),
          `an Ingress of ${String(apiVersion)} is not read`,
          "read it as networking.k8s.io/v1: kubectl get ingress -A -o yaml",
        );
      else {
        const { metadata, spec } = parsed(ingress, object, at);
        const { name, namespace, annotations = {}, creationTimestamp } = metadata;
        const created = Date.parse(String(creationTimestamp ?? ""));
        const manifest = { name, namespace, annotations, spec: spec as IngressSpec, at };
        found.push({ created: Number.isNaN(created) ? 0 : created, manifest });
      }
    }
  }
  return {
    ingresses: found.toSorted((a, b) => a.created - b.created).map(({ manifest }) => manifest),
    portOf: (namespace, name, port) => ports.get(`${namespace}/${name}/${port}`),
  };
}

/** @throws SyntaxProblem */
function parsed<T extends z.ZodType>(schema: T, value: unknown, at: (path: Path) => Place): z.output<T> {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const [{ path, message } = { path: [], message: "is invalid" }] = result.error.issues;
  const fields = path.filter((each) => typeof each !== "symbol");
  throw new SyntaxProblem(at(fields), `${fields.join(".")}: ${message}`);
}

/** Where a field begins, or the nearest one around it that is written. */
function offsetOf(document: Document.Parsed, path: Path): number {
  let node: unknown = document.contents;
  let offset = document.contents?.range[0] ?? 0;
  for (const part of path) {
    let next: unknown;
    if (isMap(node)) {
      const pair = node.items.find(({ key }) => isScalar(key) && key.value === part);
      if (!isPair(pair)) return offset;
      if (isNode(pair.key)) offset = pair.key.range?.[0] ?? offset;
      next = pair.value;
    } else if (isSeq(node)) {
      next = node.items[Number(part)];
      if (isNode(next)) offset = next.range?.[0] ?? offset;
    }
    if (next === undefined) return offset;
    node = next;
  }
  return offset;
}

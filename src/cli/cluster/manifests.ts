import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { LineCounter, parseAllDocuments } from "yaml";
import { type Fields, fieldsOf, isObject } from "../../base/fields.ts";
import { fileProblem } from "../../base/file-problem.ts";
import { isWritten } from "../../controller/base/watched.ts";
import { type KubeClient, KubeError, resourcePath } from "../../kube/client.ts";
import { RESOURCES, type ResourceName } from "../../kube/resources.ts";
import { CliError } from "../runner/errors.ts";
import { isNotFound, kubeFailure } from "./errors.ts";

/** An object of a file. */
interface Manifest {
  /** `HTTPRoute shop/web`, for messages. */
  readonly name: string;
  readonly object: Fields;
  /** Undefined: the controller reads no objects of this kind. */
  readonly resource: ResourceName | undefined;
}

const FILE = /\.(ya?ml|json)$/;

/**
 * The objects of files, of folders with files that end in `.yaml`, `.yml` or `.json`, and of standard input (`-`). Lists count as their items.
 * Throws CliError for what is no object.
 */
export function readManifests(paths: readonly string[], namespace: string): readonly Manifest[] {
  return paths.flatMap(filesOf).flatMap((path) => {
    const name = path === "-" ? "standard input" : path;
    return documentsOf(path, name).flatMap(({ value, line }) => {
      const { kind, items } = fieldsOf(value);
      const objects = typeof kind === "string" && kind.endsWith("List") && Array.isArray(items) ? items : [value];
      return objects.map((each) => manifestOf(each, `${name}:${line}`, namespace));
    });
  });
}

function filesOf(path: string): readonly string[] {
  try {
    if (path === "-" || !statSync(path).isDirectory()) return [path];
    const files = readdirSync(path).filter((name) => FILE.test(name));
    if (files.length === 0) throw new Error("the folder has no file that ends in .yaml, .yml or .json");
    return files.sort().map((name) => join(path, name));
  } catch (error) {
    throw unreadable(path, error);
  }
}

function documentsOf(path: string, name: string): { readonly value: unknown; readonly line: number }[] {
  const lines = new LineCounter();
  let text: string;
  try {
    text = readFileSync(path === "-" ? 0 : path, "utf8");
  } catch (error) {
    throw unreadable(name, error);
  }
  return [...parseAllDocuments(text, { lineCounter: lines, prettyErrors: false })].flatMap((document) => {
    const [error] = document.errors;
    const at = (offset: number): string => {
      const { line, col } = lines.linePos(offset);
      return `${line}:${col}`;
    };
    if (error !== undefined) throw new CliError("failure", `${name}:${at(error.pos[0])}: ${error.message}`);
    const value = document.toJS({ maxAliasCount: 100 }) as unknown;
    if (value === null || value === undefined) return [];
    return [{ value, line: lines.linePos(document.contents?.range?.[0] ?? 0).line }];
  });
}

function unreadable(path: string, error: unknown): CliError {
  return error instanceof CliError ? error : new CliError("failure", `cannot read ${path}: ${fileProblem(error)}`);
}

/** `where`: for errors. `namespace`: of objects that name none. */
function manifestOf(value: unknown, where: string, namespace: string): Manifest {
  const { apiVersion, kind, metadata } = fieldsOf(value);
  const { name, namespace: own = namespace } = fieldsOf(metadata);
  if (!isObject(value) || typeof apiVersion !== "string" || typeof kind !== "string" || typeof name !== "string")
    throw new CliError("failure", `${where}: not an object of Kubernetes`, {
      hint: "each needs apiVersion, kind and metadata.name",
    });
  const resource = resourceOf(apiVersion, kind);
  const isNamespaced = resource?.namespaced !== false;
  return {
    name: `${kind} ${isNamespaced ? `${own}/` : ""}${name}`,
    object: { ...value, metadata: { ...fieldsOf(metadata), ...(isNamespaced && { namespace: own }) } },
    resource,
  };
}

/** Undefined for kinds that the controller does not read, such as Service of another group. */
function resourceOf(apiVersion: string, kind: string): ResourceName | undefined {
  if (!isWritten(kind)) return undefined;
  const [version = "", group = ""] = apiVersion.split("/").reverse();
  const resource = RESOURCES[kind];
  return resource.group === group ? { ...resource, version } : undefined;
}

/**
 * The object as it would be stored, with defaults, after all checks of the API server: an update or creation that stores nothing (a dry run). Throws
 * CliError with what the API server says.
 */
export async function dryRun(
  client: Pick<KubeClient, "request">,
  { name: what, object, resource }: Manifest & { readonly resource: ResourceName },
  signal: AbortSignal,
): Promise<unknown> {
  const { name, namespace, labels, annotations } = fieldsOf(object.metadata);
  const path = (name?: string): string =>
    resourcePath(resource, typeof namespace === "string" ? namespace : undefined, name);
  const query = { dryRun: "All" };
  const attempt = async (): Promise<unknown> => {
    const before = await existing(client, path(String(name)), signal);
    if (before === undefined) return client.request("POST", path(), { query, body: object, signal });
    // As by `kubectl apply`, others keep their labels and annotations.
    const former = fieldsOf(before.metadata);
    const metadata = {
      ...former,
      labels: { ...fieldsOf(former.labels), ...fieldsOf(labels) },
      annotations: { ...fieldsOf(former.annotations), ...fieldsOf(annotations) },
    };
    return client.request("PUT", path(String(name)), { query, body: { ...object, metadata }, signal });
  };
  try {
    // Others may write or create the object in between.
    return await attempt().catch((error: unknown) => {
      if (error instanceof KubeError && error.status === 409) return attempt();
      throw error;
    });
  } catch (error) {
    throw kubeFailure(`the API server does not accept ${what}`, error);
  }
}

async function existing(
  client: Pick<KubeClient, "request">,
  path: string,
  signal: AbortSignal,
): Promise<Fields | undefined> {
  try {
    return fieldsOf(await client.request<unknown>("GET", path, { signal }));
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}

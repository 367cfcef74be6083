import { GATEWAY_GROUP, TRACEGATE_GROUP } from "../../../kube/objects.ts";
import type { Json, Place } from "../converted.ts";
import type { Findings } from "../findings.ts";
import { Names, nameOf } from "../names.ts";
import { toYaml } from "../yaml.ts";

/** The kinds that are written, in the order of the output. */
const VERSIONS = {
  Gateway: `${GATEWAY_GROUP}/v1`,
  ListenerSet: `${GATEWAY_GROUP}/v1`,
  HTTPRoute: `${GATEWAY_GROUP}/v1`,
  TracegatePolicy: `${TRACEGATE_GROUP}/v1beta1`,
  TracegateBackend: `${TRACEGATE_GROUP}/v1beta1`,
  Service: "v1",
  EndpointSlice: "discovery.k8s.io/v1",
  ReferenceGrant: `${GATEWAY_GROUP}/v1`,
} as const;

type WrittenKind = keyof typeof VERSIONS;

interface Written {
  readonly kind: WrittenKind;
  readonly metadata: Json & { readonly name: string };
  /** `spec`, or the fields of a kind that has none. */
  readonly content: Json;
  /** Lines of a comment before the object. */
  readonly from: readonly string[];
}

/** The object that something is written for. */
export interface Owner {
  /** Absent: the input has no namespaces. */
  readonly namespace: string | undefined;
  readonly at: Place;
}

/** The objects that are written. */
export class Output {
  readonly findings: Findings;
  readonly #objects: Written[] = [];
  readonly #names = new Map<string, Names>();
  /** Names of objects that several others use, by their content. */
  readonly #shared = new Map<string, string>();
  readonly #files = new Map<string, string>();

  constructor(findings: Findings) {
    this.findings = findings;
  }

  /** Adds an object; its name, which gets a number if it is taken. */
  add(
    kind: WrittenKind,
    namespace: string | undefined,
    wanted: string,
    content: Json,
    options: { readonly from?: readonly string[]; readonly metadata?: Json } = {},
  ): string {
    const name = this.#name(kind, namespace, wanted);
    const metadata = { name, ...(namespace !== undefined && { namespace }), ...options.metadata };
    this.#objects.push({ kind, metadata, content, from: options.from ?? [] });
    return name;
  }

  /** The name of the object with this content, which is added if there is none. */
  share(kind: WrittenKind, namespace: string | undefined, wanted: string, content: Json, metadata: Json = {}): string {
    const key = JSON.stringify([kind, namespace, content, metadata]);
    const known = this.#shared.get(key) ?? this.add(kind, namespace, wanted, content, { metadata });
    this.#shared.set(key, known);
    return known;
  }

  /** The Secret or ConfigMap that a file becomes. A finding says how it is made. */
  objectOfFile(
    kind: "Secret" | "ConfigMap",
    namespace: string | undefined,
    path: string,
    at: Place,
    key: string,
  ): string {
    return this.#made(`${kind} ${namespace} ${path} ${key}`, kind, namespace, stem(path), at, (name) => ({
      what: path,
      command: `create ${kind === "Secret" ? "secret generic" : "configmap"} ${name} --from-file=${key}=${path}`,
    }));
  }

  /** The Secret that a certificate and its key become. */
  tlsSecret(namespace: string | undefined, wanted: string, cert: string, key: string, at: Place): string {
    return this.#made(`tls ${namespace} ${cert} ${key}`, "Secret", namespace, wanted, at, (name) => ({
      what: cert,
      command: `create secret tls ${name} --cert=${cert} --key=${key}`,
    }));
  }

  /** The name of a Secret with a certificate that somebody else writes. */
  tlsSecretOfOthers(namespace: string | undefined, wanted: string): string {
    return this.#name("Secret", namespace, wanted);
  }

  #made(
    identity: string,
    kind: string,
    namespace: string | undefined,
    wanted: string,
    at: Place,
    how: (name: string) => { readonly what: string; readonly command: string },
  ): string {
    const known = this.#files.get(identity);
    if (known !== undefined) return known;
    const name = this.#name(kind, namespace, wanted);
    this.#files.set(identity, name);
    const { what, command } = how(name);
    this.findings.find(
      "note",
      at,
      `${what} becomes ${kind} ${name}`,
      `kubectl ${namespace === undefined ? "" : `-n ${namespace} `}${command}`,
    );
    return name;
  }

  #name(kind: string, namespace: string | undefined, wanted: string): string {
    const scope = `${kind} ${namespace}`;
    const names = this.#names.get(scope) ?? new Names();
    this.#names.set(scope, names);
    return names.unique(wanted);
  }

  /** Documents of YAML. */
  text(): string {
    const kinds = Object.keys(VERSIONS);
    return this.#objects
      .toSorted((a, b) => kinds.indexOf(a.kind) - kinds.indexOf(b.kind))
      .map((each) => textOf(each))
      .join("---\n");
  }
}

function textOf({ kind, metadata, content, from }: Written): string {
  const isSpec = kind !== "EndpointSlice";
  const comment = from.map((line) => `# ${line.replace(/[\r\n]+/g, " ").slice(0, 120)}\n`).join("");
  return `${comment}${toYaml({ apiVersion: VERSIONS[kind], kind, metadata, ...(isSpec ? { spec: content } : content) })}`;
}

/** The name of a file without its folders and its ending, as a name of an object. */
function stem(path: string): string {
  return nameOf(path.replace(/^.*\//, "").replace(/(?<=.)\.\w+$/, ""));
}

/** The name of a file as a key of a Secret or ConfigMap. */
export function keyOf(path: string): string {
  return path.replace(/^.*\//, "").replace(/[^-._A-Za-z0-9]/g, "-") || "content";
}

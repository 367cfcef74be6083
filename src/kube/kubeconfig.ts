/**
 * Kubeconfig files, merged as kubectl does: of entries with the same name the first counts. Certificates, tokens and passwords are
 * read here; `@kubernetes/client-node`, which takes 0.6 s and 80 MiB to load, is used for credential plugins and proxies only.
 */

import { readFile } from "node:fs/promises";
import type { Agent, RequestOptions } from "node:https";
import { dirname, resolve } from "node:path";
import { parse } from "yaml";
import { messageOf } from "../base/errors.ts";
import { type Fields, fieldsOf } from "../base/fields.ts";
import { fileProblem } from "../base/file-problem.ts";
import { type ClusterAccess, type Credentials, type TlsSettings, unusable } from "./credentials.ts";

/** An entry of a file; paths in it are relative to `folder`. */
interface Entry {
  readonly fields: Fields;
  readonly folder: string;
}

interface Merged {
  readonly clusters: ReadonlyMap<string, Entry>;
  readonly users: ReadonlyMap<string, Entry>;
  readonly contexts: ReadonlyMap<string, Entry>;
  readonly current: string;
}

/** @throws KubeError (reason `Configuration`) that names the files and what they lack */
export async function kubeconfigAccess(files: readonly string[], context: string | undefined): Promise<ClusterAccess> {
  const where = `kubeconfig ${files.join(", ")}`;
  const merged = await merge(files);
  const current = context ?? merged.current;
  const chosen = merged.contexts.get(current)?.fields;
  if (chosen === undefined) {
    const what = current === "" ? "no current-context" : `no context "${current}"`;
    throw unusable(`${where} has ${what}; contexts: ${[...merged.contexts.keys()].join(", ") || "none"}`);
  }
  const clusterName = text(chosen.cluster) ?? "";
  const userName = text(chosen.user) ?? "";
  const cluster = merged.clusters.get(clusterName);
  const user = merged.users.get(userName) ?? { fields: {}, folder: "" };
  if (cluster === undefined)
    throw unusable(`${where}: context "${current}" names cluster "${clusterName}", which it lacks`);
  const address = text(cluster.fields.server) ?? "";
  const server = URL.parse(address);
  if (server === null)
    throw unusable(`${where}: cluster "${clusterName}": server ${JSON.stringify(address)} is not a URL`);
  const read = needsLibrary(cluster, user) ? libraryCredentials(files, current) : () => credentialsOf(cluster, user);
  return {
    server,
    namespace: text(chosen.namespace) ?? "default",
    async credentials() {
      try {
        const found = await read();
        return { ...found, headers: { ...found.headers, ...impersonation(user.fields) } };
      } catch (error) {
        throw unusable(`${where}: credentials of user "${userName}": ${messageOf(error)}`, error);
      }
    },
  };
}

async function merge(files: readonly string[]): Promise<Merged> {
  const merged = {
    clusters: new Map<string, Entry>(),
    users: new Map<string, Entry>(),
    contexts: new Map<string, Entry>(),
  };
  let current = "";
  for (const file of files) {
    try {
      const content = fieldsOf(parse(await readFile(file, "utf8")));
      for (const [list, key] of [
        ["clusters", "cluster"],
        ["users", "user"],
        ["contexts", "context"],
      ] as const)
        for (const item of listOf(content[list])) {
          const { name, [key]: value } = fieldsOf(item);
          if (typeof name !== "string" || merged[list].has(name)) continue;
          merged[list].set(name, { fields: fieldsOf(value), folder: dirname(file) });
        }
      if (current === "") current = text(content["current-context"]) ?? "";
    } catch (error) {
      throw unusable(`kubeconfig ${file} cannot be used: ${fileProblem(error)}`, error);
    }
  }
  return { ...merged, current };
}

function needsLibrary({ fields: cluster }: Entry, { fields: user }: Entry): boolean {
  return cluster["proxy-url"] !== undefined || user.exec !== undefined || user["auth-provider"] !== undefined;
}

async function credentialsOf(cluster: Entry, user: Entry): Promise<Credentials> {
  const [ca, cert, key] = await Promise.all([
    content(cluster, "certificate-authority"),
    content(user, "client-certificate"),
    content(user, "client-key"),
  ]);
  const servername = text(cluster.fields["tls-server-name"]);
  const tls: TlsSettings = {
    ...(ca !== undefined && { ca }),
    ...(cert !== undefined && { cert }),
    ...(key !== undefined && { key }),
    ...(servername !== undefined && { servername }),
    ...(cluster.fields["insecure-skip-tls-verify"] === true && { rejectUnauthorized: false }),
  };
  const headers: Record<string, string> = {};
  const { tokenFile, username, password } = user.fields;
  const token =
    text(user.fields.token) ?? (text(tokenFile) && (await read(user, text(tokenFile))).toString("utf8").trim());
  if (token !== undefined && token !== "") headers.authorization = `Bearer ${token}`;
  else if (text(username) !== undefined)
    headers.authorization = `Basic ${Buffer.from(`${text(username)}:${text(password) ?? ""}`).toString("base64")}`;
  return { tls, headers };
}

/** The user to impersonate: `as`, `as-uid`, `as-groups` and `as-user-extra`. Throws if `as` is missing but others are set. */
function impersonation(user: Fields): Credentials["headers"] {
  const as = text(user.as);
  const uid = text(user["as-uid"]);
  const groups = textsOf(user["as-groups"]);
  const extra = Object.entries(fieldsOf(user["as-user-extra"]));
  if (as === undefined) {
    if (uid === undefined && groups.length === 0 && extra.length === 0) return {};
    throw new Error("as-uid, as-groups and as-user-extra need as, the name of the user to impersonate");
  }
  return {
    "impersonate-user": as,
    ...(uid !== undefined && { "impersonate-uid": uid }),
    ...(groups.length > 0 && { "impersonate-group": groups }),
    // Keys may contain characters that are not allowed in header names.
    ...Object.fromEntries(
      extra.map(([key, values]) => [`impersonate-extra-${encodeURIComponent(key).toLowerCase()}`, textsOf(values)]),
    ),
  };
}

/** Of `<name>-data`, in base64, or of the file that `<name>` names. */
async function content(entry: Entry, name: string): Promise<Buffer | undefined> {
  const data = text(entry.fields[`${name}-data`]);
  if (data !== undefined) return Buffer.from(data, "base64");
  const file = text(entry.fields[name]);
  return file === undefined ? undefined : read(entry, file);
}

/** A file that an entry names. Rejects with an Error that names it. */
async function read({ folder }: Entry, file = ""): Promise<Buffer> {
  const path = resolve(folder, file);
  try {
    return await readFile(path);
  } catch (cause) {
    throw new Error(`cannot read ${path}: ${fileProblem(cause)}`, { cause });
  }
}

/** Loads the library with the first call. */
function libraryCredentials(files: readonly string[], context: string): () => Promise<Credentials> {
  const load = async () => {
    const { KubeConfig } = await import("@kubernetes/client-node/dist/config.js");
    const config = new KubeConfig();
    for (const [index, file] of files.entries()) {
      const part = index === 0 ? config : new KubeConfig();
      part.loadFromFile(file);
      if (part !== config) config.mergeConfig(part, true);
    }
    config.setCurrentContext(context);
    return config;
  };
  let loaded: ReturnType<typeof load> | undefined;
  return async () => {
    loaded ??= load();
    const config = await loaded;
    const options: RequestOptions = {};
    await config.applyToHTTPSOptions(options);
    const { ca, cert, key, passphrase, pfx, rejectUnauthorized, servername, auth } = options;
    const headers: Record<string, string> = {};
    for (const [name, value] of Object.entries(options.headers ?? {})) headers[name.toLowerCase()] = String(value);
    if (typeof auth === "string") headers.authorization = `Basic ${Buffer.from(auth).toString("base64")}`;
    const proxied = config.getCurrentCluster()?.proxyUrl;
    return {
      tls: defined({ ca, cert, key, passphrase, pfx, rejectUnauthorized, servername }),
      headers,
      // The library's agent speaks to proxies; without one, the client's own keep connections alive.
      ...(proxied !== undefined && proxied !== "" && { agent: options.agent as Agent }),
    };
  };
}

function defined(settings: { readonly [K in keyof TlsSettings]?: TlsSettings[K] | undefined }): TlsSettings {
  return Object.fromEntries(Object.entries(settings).filter(([, value]) => value !== undefined));
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function textsOf(value: unknown): string[] {
  return listOf(value).filter((each) => typeof each === "string");
}

/** Empty texts are as good as none. */
function text(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

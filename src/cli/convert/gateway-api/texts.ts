/** Policies as a TracegatePolicy has them. */
import type { Json } from "../converted.ts";
import { keyOf, type Output, type Owner } from "./output.ts";
import { grant, serviceOf } from "./services.ts";

/** Kinds that call a service. */
const CALLING = ["extAuthz", "extProc", "requestMirror", "remoteRateLimit"];
/** Kinds whose files are secret. */
const SECRET = ["basicAuth", "apiKey", "backendAuth", "oidc"];

/** Secrets and ConfigMaps in place of files, and Services in place of hosts. */
export function inCluster(policies: Json, owner: Owner, output: Output): Json {
  return Object.fromEntries(
    Object.entries(policies).map(([kind, value]) => {
      if (kind === "backendTLS") return [kind, tlsInCluster(value as Json, owner, output)];
      const written = CALLING.includes(kind) ? callInCluster(value, owner, output) : value;
      return [kind, withoutFiles(written, SECRET.includes(kind) ? "Secret" : "ConfigMap", owner, output)];
    }),
  );
}

function callInCluster(value: unknown, owner: Owner, output: Output): unknown {
  if (Array.isArray(value)) return value.map((each) => callInCluster(each, owner, output));
  const { host, ...others } = value as Json;
  const service = typeof host === "string" ? serviceOf(host) : undefined;
  if (service === undefined) return value;
  grant("TracegatePolicy", service, owner, output);
  return { backendRef: service, ...others };
}

function withoutFiles(value: unknown, kind: "Secret" | "ConfigMap", owner: Owner, output: Output): unknown {
  if (Array.isArray(value)) return value.map((each) => withoutFiles(each, kind, owner, output));
  if (typeof value !== "object" || value === null) return value;
  if ("file" in value && typeof value.file === "string" && Object.keys(value).length === 1) {
    const key = keyOf(value.file);
    const reference = { name: output.objectOfFile(kind, owner.namespace, value.file, owner.at, key), key };
    return kind === "Secret" ? { secretKeyRef: reference } : { configMapKeyRef: reference };
  }
  return Object.fromEntries(
    Object.entries(value).map(([name, each]) => [
      name,
      // Policies can be in others.
      withoutFiles(each, SECRET.includes(name) ? "Secret" : kind, owner, output),
    ]),
  );
}

function tlsInCluster({ cert, key, root, ...others }: Json, { namespace, at }: Owner, output: Output): Json {
  const written: Record<string, unknown> = others;
  if (typeof cert === "string" && typeof key === "string") {
    const name = output.tlsSecret(namespace, "client-certificate", cert, key, at);
    written.cert = { secretKeyRef: { name, key: "tls.crt" } };
    written.key = { secretKeyRef: { name, key: "tls.key" } };
  } else Object.assign(written, cert !== undefined && { cert }, key !== undefined && { key });
  if (typeof root === "string")
    written.root = {
      configMapKeyRef: { name: output.objectOfFile("ConfigMap", namespace, root, at, "ca.crt"), key: "ca.crt" },
    };
  else if (root !== undefined) written.root = root;
  return written;
}

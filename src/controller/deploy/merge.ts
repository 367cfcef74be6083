import type { Json, JsonObject } from "../base/manifest.ts";

/**
 * Fields of lists whose elements are identified by a key, as in Kubernetes' strategic merge patch; other lists are replaced.
 * Elements of `ports` are compared with their protocol, because one port may take TCP and UDP.
 */
const MERGE_KEYS: Readonly<Record<string, (element: JsonObject) => Json | undefined>> = {
  containers: ({ name }) => name,
  initContainers: ({ name }) => name,
  env: ({ name }) => name,
  volumes: ({ name }) => name,
  imagePullSecrets: ({ name }) => name,
  schedulingGates: ({ name }) => name,
  resourceClaims: ({ name }) => name,
  volumeMounts: ({ mountPath }) => mountPath,
  volumeDevices: ({ devicePath }) => devicePath,
  hostAliases: ({ ip }) => ip,
  topologySpreadConstraints: ({ topologyKey }) => topologyKey,
  ports: ({ containerPort, port = containerPort, protocol }) =>
    port === undefined ? undefined : `${port}/${protocol ?? "TCP"}`,
};
/** How an object or element is patched: `replace`, `delete` or (the default) `merge`. */
const DIRECTIVE = "$patch";

/**
 * Changes `base` by an overlay, as `kubectl patch --type strategic` does: objects are merged, null removes a field, lists of the
 * table above are merged by key, all others are replaced.
 */
export function strategicMerge(base: JsonObject, overlay: JsonObject): JsonObject {
  const { [DIRECTIVE]: directive, ...fields } = overlay;
  const merged: Record<string, Json> = directive === "replace" ? {} : { ...base };
  for (const [name, value] of Object.entries(fields)) {
    if (value === null || (isObject(value) && value[DIRECTIVE] === "delete")) delete merged[name];
    else merged[name] = mergeValue(name, merged[name], value);
  }
  return merged;
}

function mergeValue(name: string, before: Json | undefined, value: Json): Json {
  if (isObject(value)) return strategicMerge(isObject(before) ? before : {}, value);
  const keyOf = MERGE_KEYS[name];
  if (!isList(value) || keyOf === undefined) return value;
  return mergeList(isList(before) ? before : [], value, keyOf);
}

function mergeList(
  before: readonly Json[],
  changes: readonly Json[],
  keyOf: (element: JsonObject) => Json | undefined,
) {
  const replaces = changes.some((each) => isObject(each) && each[DIRECTIVE] === "replace" && keyOf(each) === undefined);
  const merged = replaces ? [] : [...before];
  for (const change of changes) {
    if (!isObject(change)) {
      merged.push(change);
      continue;
    }
    const key = keyOf(change);
    if (key === undefined && DIRECTIVE in change) continue;
    const index = merged.findIndex((each) => isObject(each) && keyOf(each) === key);
    const existing = merged[index];
    if (change[DIRECTIVE] === "delete") {
      if (index >= 0) merged.splice(index, 1);
    } else if (isObject(existing)) merged[index] = strategicMerge(existing, change);
    else merged.push(strategicMerge({}, change));
  }
  return merged;
}

function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !isList(value);
}

function isList(value: Json | undefined): value is readonly Json[] {
  return Array.isArray(value);
}

import { readFileSync } from "node:fs";
import { parseAllDocuments } from "yaml";
import type { Received } from "./api-server.ts";

interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly resourceNames?: readonly string[];
  readonly verbs: readonly string[];
}

interface Role {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly rules: readonly Rule[];
}

const MANIFEST = new URL("../../../install/tracegate.yaml", import.meta.url);

/** What `install/tracegate.yaml` allows the controller: in the whole cluster, and in its own namespace. */
export function controllerRules(kind: "ClusterRole" | "Role"): readonly Rule[] {
  const documents = parseAllDocuments(readFileSync(MANIFEST, "utf8")).map((each) => each.toJS() as Role);
  // Others are for users.
  const isOwn = ({ metadata }: Role): boolean =>
    metadata.name === (kind === "Role" ? "tracegate" : "tracegate-tracegate-system");
  return documents.find((each) => each.kind === kind && isOwn(each))?.rules ?? [];
}

/** The requests among `received` that the permissions of the controller do not cover, in words. */
export function forbidden(received: readonly Received[], namespace: string): readonly string[] {
  const [everywhere, own] = [controllerRules("ClusterRole"), controllerRules("Role")];
  const found = received.flatMap((request) =>
    verbsOf(request)
      .filter((verb) => {
        const target = targetOf(request.path);
        const rules = target.namespace === namespace ? [...everywhere, ...own] : everywhere;
        return !rules.some(
          ({ apiGroups, resources, resourceNames, verbs }) =>
            apiGroups.includes(target.group) &&
            resources.includes(target.resource) &&
            (resourceNames === undefined || resourceNames.includes(target.name ?? "")) &&
            verbs.includes(verb),
        );
      })
      .map((verb) => `${verb} ${request.path}`),
  );
  return [...new Set(found)];
}

/** Server-side apply of an object that does not exist needs `create` too. */
function verbsOf({ method, path, query, contentType }: Received): readonly string[] {
  if (method === "GET") {
    if (targetOf(path).name !== undefined) return ["get"];
    return [query.get("watch") === "true" ? "watch" : "list"];
  }
  if (method === "PATCH") return contentType === "application/apply-patch+yaml" ? ["patch", "create"] : ["patch"];
  return [{ POST: "create", PUT: "update", DELETE: "delete" }[method] ?? method];
}

function targetOf(path: string) {
  const [, group = "", namespace, resource = "", name, subresource] =
    /^\/(?:api|apis\/([^/]+))\/[^/]+(?:\/namespaces\/([^/]+)(?=\/))?\/([^/]+)(?:\/([^/]+))?(?:\/([^/]+))?$/.exec(
      path,
    ) ?? [];
  return { group, namespace, resource: subresource === undefined ? resource : `${resource}/${subresource}`, name };
}

import { Document, isMap, isSeq, type Node, Scalar } from "yaml";
import type { Converted, ConvertedListener, ConvertedPort } from "./converted.ts";

/** What was converted as a configuration file of tracegate. */
export function writeFile({ ports, routes, backends, frontendPolicies }: Converted): string {
  const content = {
    gateways: Object.fromEntries(ports.map((each) => [each.name, gatewayOf(each)])),
    ...(Object.keys(frontendPolicies).length > 0 && { frontendPolicies }),
    ...(backends.length > 0 && { backends }),
    routes: routes.map(({ name, listeners, matches, policies, backends: own }) => ({
      name,
      gateways: listeners,
      ...(matches.length > 0 && { matches }),
      ...(Object.keys(policies).length > 0 && { policies }),
      ...(own.length > 0 && { backends: own }),
    })),
  };
  const document = new Document(escaped(content), { aliasDuplicateObjects: false });
  const written = document.get("routes");
  if (isSeq<Node>(written))
    written.items.forEach((item, i) => {
      const from = routes[i]?.from;
      // A line break would end the comment.
      if (from !== undefined) item.commentBefore = ` ${from.replace(/[\r\n]+/g, " ").slice(0, 120)}`;
    });
  compact(document.contents);
  return `# tracegate config\n${document.toString({ lineWidth: 0 })}`;
}

function gatewayOf({ port, addresses, listeners }: ConvertedPort): object {
  return {
    port,
    ...(addresses !== undefined && { address: addresses.length === 1 ? addresses[0] : addresses }),
    listeners: listeners.map(({ name, hostname, tls, policies }: ConvertedListener) => ({
      name,
      hostname,
      ...(tls && { tls }),
      ...policies,
    })),
  };
}

/** A dollar sign would name a variable of the environment. */
function escaped(value: unknown): unknown {
  if (typeof value === "string") return value.replaceAll("$", "$$$$");
  if (Array.isArray(value)) return value.map(escaped);
  if (typeof value === "object" && value !== null)
    return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, escaped(each)]));
  return value;
}

/** Maps and lists of a few plain values stand on one line. */
function compact(node: unknown): boolean {
  if (node instanceof Scalar) return String(node.value).length <= 40;
  if (!isMap(node) && !isSeq(node)) return false;
  const children = node.items.map((item) => compact(isPair(item) ? item.value : item));
  const isFlow = children.length <= 4 && children.every(Boolean) && JSON.stringify(node).length <= 100;
  if (isFlow) node.flow = true;
  return isFlow && (node.commentBefore ?? "") === "";
}

function isPair(item: unknown): item is { readonly value: unknown } {
  return typeof item === "object" && item !== null && "key" in item && "value" in item;
}

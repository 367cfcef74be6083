/** How people call the backends of routes, most of which have no name. */
import { targetName } from "../upstream/settings/pool-target.ts";
import type { Target } from "../upstream/settings/target.ts";
import type { RouteBackend } from "./ir.ts";

/** Of a backend that is written in its route. */
const INLINE = /^\/.+\/.+\/backend\d+$/;
/** Of a TracegateBackend. */
const OBJECT = /^\/([^/]+\/[^/]+)$/;
/** Of a Service. */
const SERVICE = /^([^/]+)\/(?:udp\.)?([^.]+)\.\1\.svc\.cluster\.local$/;

/**
 * The name of a backend: `/api` if it has one in the file, `shop/api` if it is a TracegateBackend; else where it leads, such as
 * `10.0.0.7:8080` or, for the Service `web` in the namespace `shop`, `shop/web:80`.
 */
export function backendName({ key, target }: Pick<RouteBackend, "key" | "target">): string {
  return INLINE.test(key) ? (nameOfTarget(target) ?? key) : key.replace(OBJECT, "$1");
}

/** undefined: nothing says where it should lead. */
function nameOfTarget(target: Target): string | undefined {
  switch (target.type) {
    case "static":
    case "unix":
      return targetName(target);
    case "service":
      return `${target.key.replace(SERVICE, "$1/$2")}:${target.port}`;
    case "pool":
      return target.name;
    case "routeGroup":
      return target.name;
    case "invalid":
      return target.reference === "" ? undefined : target.reference;
    case "dynamic":
    case "internal":
      return target.type;
  }
}

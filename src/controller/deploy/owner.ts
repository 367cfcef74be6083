import type { Gateway } from "../../kube/objects.ts";
import type { Fleet } from "../translate/model/fleets.ts";

/** Whose proxies they are, as far as it decides the objects that run them. */
export interface Owner {
  readonly fleet: Fleet;
  /** Of the Gateway, or of the Gateways that share them. */
  readonly className: string;
  /** Absent: Gateways of several namespaces share them, so none of these owns them, and the controller deletes them after the last one. */
  readonly gateway?: Gateway;
}

import type { Path } from "./paths.ts";

/** Where a listener, route, policy or rule of a configuration was written. */
export interface Origin {
  /** The Kubernetes object; absent: the configuration file. */
  readonly object?: ObjectName;
  /** The field in the file or object: names of fields and positions in lists, such as `["binds", 0, "port"]`. */
  readonly path: Path;
}

/** Names a Kubernetes object. */
interface ObjectName {
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
}

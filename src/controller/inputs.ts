/** What translation reads besides objects of the cluster. The controller sets them in the graph like objects. */
import type { KubeObject, Objects } from "../kube/objects.ts";

/** What the proxies of a Gateway say about what they were sent. Has the key of the Gateway; absent: nothing to report. */
export interface ProxyReport extends KubeObject {
  readonly kind: "ProxyReport";
  /** Why proxies rejected (NACK) the state that was sent last, each message once. */
  readonly rejections: readonly string[];
}

/** How the deployment of a Gateway went. Has the key of the Gateway; absent: it has not failed. */
export interface DeploymentReport extends KubeObject {
  readonly kind: "DeploymentReport";
  readonly error: string;
}

/** Who we are. There is one, with the name `controller`; absent: `CONTROLLER_NAME`. */
export interface ControllerIdentity extends KubeObject {
  readonly kind: "ControllerIdentity";
  readonly controllerName: string;
}

export const CONTROLLER_NAME = "tracegate.dev/gateway-controller";

export interface Inputs extends Objects {
  readonly ProxyReport: ProxyReport;
  readonly DeploymentReport: DeploymentReport;
  readonly ControllerIdentity: ControllerIdentity;
}

export type InputKind = keyof Inputs;

import { nameOfKey } from "../../base/object-key.ts";
import { GATEWAY_GROUP, type Kind, type ParentReference, type RouteGroupKind } from "../../kube/objects.ts";
import type { ConditionDraft } from "../translate/model/model.ts";

/**
 * The status that an object should have. Conditions get the observed generation and the time of their last transition when the
 * status is written. Parents and ancestors of other controllers are kept.
 */
export interface DesiredStatus {
  readonly kind: Kind;
  /** `<namespace>/<name>` */
  readonly key: string;
  /** The generation that was translated. */
  readonly generation: number;
  readonly status: StatusBody;
}

export type StatusBody =
  /** GatewayClass, TracegateBackend */
  | {
      readonly conditions: readonly ConditionDraft[];
      readonly supportedFeatures?: readonly { readonly name: string }[];
    }
  /** Gateway, ListenerSet */
  | {
      readonly conditions: readonly ConditionDraft[];
      readonly addresses?: readonly { readonly type: string; readonly value: string }[];
      readonly attachedListenerSets?: number;
      readonly listeners: readonly {
        readonly name: string;
        readonly supportedKinds: readonly RouteGroupKind[];
        readonly attachedRoutes: number;
        readonly conditions: readonly ConditionDraft[];
      }[];
    }
  /** Ingress */
  | {
      readonly loadBalancer: {
        readonly ingress: readonly {
          readonly ip?: string;
          readonly hostname?: string;
          readonly ports?: readonly { readonly port: number; readonly protocol: string; readonly error?: string }[];
        }[];
      };
    }
  /** Routes */
  | {
      readonly parents: readonly {
        readonly parentRef: ParentReference;
        readonly conditions: readonly ConditionDraft[];
      }[];
    }
  /** Policies */
  | {
      readonly ancestors: readonly {
        readonly ancestorRef: ParentReference;
        readonly conditions: readonly ConditionDraft[];
      }[];
    };

/** References to Gateways (`<namespace>/<name>`) as ancestors of a policy, each once, sorted. */
export function gatewayReferences(gateways: readonly string[]): readonly ParentReference[] {
  return [...new Set(gateways)].sort().map((gateway) => {
    return { group: GATEWAY_GROUP, kind: "Gateway", ...nameOfKey(gateway) };
  });
}

/** `spec.addresses` of Gateways, and the addresses that were assigned. */
import type { Gateway, Service } from "../../../kube/objects.ts";
import type { Problem } from "../model/model.ts";

interface RequestedAddresses {
  /** Static addresses; empty: the Gateway asks for none. */
  readonly ips: readonly string[];
  /** Why the Gateway is not accepted. */
  readonly unsupported?: Problem;
  /** Why it cannot be programmed. */
  readonly unusable?: Problem;
}

export function requestedAddresses({ spec }: Gateway): RequestedAddresses {
  const requested = (spec.addresses ?? []).map(({ type = "IPAddress", value = "" }) => ({ type, value }));
  const unknown = requested.find(({ type }) => type !== "IPAddress" && type !== "Hostname");
  const hostname = requested.some(({ type }) => type === "Hostname");
  return {
    // Without a value any address of the type will do.
    ips: requested.flatMap(({ type, value }) => (type === "IPAddress" && value !== "" ? [value] : [])),
    ...(unknown && {
      unsupported: { reason: "UnsupportedAddress", message: `Unknown address kind ${unknown.type}; use IPAddress` },
    }),
    ...(hostname && {
      unusable: { reason: "AddressNotUsable", message: "Hostname addresses may not be used; request an IPAddress" },
    }),
  };
}

export interface AssignedAddress {
  readonly type: "IPAddress" | "Hostname";
  readonly value: string;
}

/** Addresses of the load balancer, otherwise cluster IPs; none without a Service. */
export function assignedAddresses(service: Service | undefined): readonly AssignedAddress[] {
  const ingress = (service?.status?.loadBalancer?.ingress ?? []).flatMap(({ ip, hostname }): AssignedAddress[] => {
    if (ip !== undefined) return [{ type: "IPAddress", value: ip }];
    return hostname === undefined ? [] : [{ type: "Hostname", value: hostname }];
  });
  if (ingress.length > 0) return ingress;
  const { clusterIP = "None", clusterIPs = [clusterIP] } = service?.spec ?? {};
  return clusterIPs
    .filter((value) => value !== "" && value !== "None")
    .map((value): AssignedAddress => ({ type: "IPAddress", value }));
}

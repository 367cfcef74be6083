/** Services and the workloads behind them, as service discovery knows them. */

/** A service-discovery object; key `<namespace>/<hostname>`. Field names as in the dump (reference 4.4). */
export interface Service {
  readonly name: string;
  readonly namespace: string;
  readonly hostname: string;
  readonly vips: readonly string[];
  /** service port → target port */
  readonly ports: Readonly<Record<string, number>>;
  readonly appProtocols?: Readonly<Record<string, string>>;
  readonly loadBalancer?: LoadBalancer;
}

/** Which workloads of a service are preferred (reference 3.28). */
export interface LoadBalancer {
  readonly routingPreferences: readonly Preference[];
  readonly mode: "Standard" | "Strict" | "Failover" | "Passthrough";
  /** `AllowAll`: also workloads whose status is not healthy. */
  readonly healthPolicy: "OnlyHealthy" | "AllowAll";
}

/** In what a workload may be near. */
export type Preference = "region" | "zone" | "subzone" | "node" | "cluster" | "network";

export interface Workload {
  readonly uid: string;
  readonly name: string;
  readonly namespace: string;
  readonly workloadIps: readonly string[];
  readonly hostname?: string;
  readonly network?: string;
  readonly node?: string;
  readonly clusterId?: string;
  readonly status: "healthy" | "unhealthy";
  readonly capacity: number;
  readonly locality?: { readonly region?: string; readonly zone?: string; readonly subzone?: string };
  /** service key (`<namespace>/<hostname>`) → service port → workload port */
  readonly services: Readonly<Record<string, Readonly<Record<string, number>>>>;
  /** From here on only shown. */
  readonly serviceAccount?: string;
  readonly trustDomain?: string;
  readonly workloadName?: string;
  readonly workloadType?: string;
  readonly canonicalName?: string;
  readonly canonicalRevision?: string;
}

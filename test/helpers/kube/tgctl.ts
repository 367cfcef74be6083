import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { invoke, type Outcome } from "../../../src/cli/fixtures/invoke.ts";
import type { Condition, ContainerStatus, Pod } from "../../../src/kube/objects.ts";
import { TestApiServer } from "./api-server.ts";

/** An API server with commands that find it by their kubeconfig; both end with the test. */
export async function testCluster(t: TestContext) {
  const server = await TestApiServer.start();
  const folder = await mkdtemp(join(tmpdir(), "tgctl-cluster-"));
  const kubeconfig = join(folder, "config");
  await writeFile(kubeconfig, server.kubeconfig);
  t.after(async () => {
    await server[Symbol.asyncDispose]();
    await rm(folder, { recursive: true });
  });
  return {
    server,
    kubeconfig,
    folder,
    tgctl: (...argv: readonly string[]): Promise<Outcome> => invoke(argv, "", { KUBECONFIG: kubeconfig }),
    gateway(name: string, namespace = "shop", conditions: readonly Omit<Condition, "lastTransitionTime">[] = []): void {
      server.set({
        apiVersion: "gateway.networking.k8s.io/v1",
        kind: "Gateway",
        metadata: { name, namespace },
        spec: { gatewayClassName: "tracegate" },
        status: { conditions },
      } as never);
    },
    pod(
      name: string,
      { labels = {}, namespace = "shop", phase = "Running", ready = true, containers = [] }: PodDraft = {},
    ): void {
      const status: Pod["status"] = {
        phase,
        conditions: [{ type: "Ready", status: ready ? "True" : "False" }],
        containerStatuses: containers,
      };
      server.set({ apiVersion: "v1", kind: "Pod", metadata: { name, namespace, labels }, status } as never);
    },
    /** Makes a port of a pod lead to a port of this machine. */
    connect(pod: string, port: number, local: number, namespace = "shop"): void {
      server.ports.set(`${namespace}/${pod}:${port}`, local);
    },
  };
}

interface PodDraft {
  readonly labels?: Readonly<Record<string, string>>;
  readonly namespace?: string;
  readonly phase?: string;
  readonly ready?: boolean;
  readonly containers?: readonly ContainerStatus[];
}

/** The label of a Gateway's pods. */
export const ofGateway = (name: string) => ({ "gateway.networking.k8s.io/gateway-name": name });

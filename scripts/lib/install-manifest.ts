/** `install/tracegate.yaml`: the Helm chart with its default values, for those who do not use Helm. */
import { spawnSync } from "node:child_process";
import { root } from "./files.ts";

const PATH = "install/tracegate.yaml";
/** The image in the default values, with any tag. */
const IMAGE = 'ghcr.io/tracegate/tracegate:[^"]*';
const NAMESPACE = "tracegate-system";
/** Helm asks for the version of the cluster; no template depends on it. */
const ANY_VERSION = "1.36.0";

const HEAD = `# The controller of tracegate, made from the Helm chart beside this file with its default values. Before it, the CRDs:
#   kubectl apply --server-side -f install/helm/tracegate/crds
# To use another image, replace it in both places, the Deployment's \`image\` and TRACEGATE_PROXY_IMAGE, which is that of the proxies:
#   sed 's|${IMAGE}|registry.example.com/tracegate:1.0|' install/tracegate.yaml | kubectl apply --server-side -f -
---
apiVersion: v1
kind: Namespace
metadata:
  name: ${NAMESPACE}
`;

/** Empty without Helm (`HELM` names the program), because the file cannot be checked without it. */
export function installManifest(): readonly (readonly [path: string, text: string])[] {
  const args = ["template", "tracegate", `${root}install/helm/tracegate`, "--namespace", NAMESPACE];
  const { status, stdout, stderr, error } = spawnSync(
    process.env.HELM ?? "helm",
    [...args, "--kube-version", ANY_VERSION],
    { encoding: "utf8" },
  );
  if (error !== undefined) return [];
  if (status !== 0) throw new Error(`helm ${args.join(" ")}: ${stderr}`);
  // What says that Helm manages the objects.
  const text = stdout.replace(/^ *(?:helm\.sh\/chart|app\.kubernetes\.io\/managed-by): .*\n/gm, "");
  return [[PATH, HEAD + text.replace(/^# Source: .*\n/gm, "")]];
}

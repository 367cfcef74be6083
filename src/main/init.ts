import { cpSync, existsSync, mkdirSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { appRoot } from "../base/app-root.ts";
import { fileProblem } from "../base/file-problem.ts";
import { CliError } from "../cli/runner/errors.ts";

/** What `tracegate init` can write. */
export const KITS = ["systemd", "compose", "kubernetes", "grafana", "argo-cd", "flux"] as const;
type Kit = (typeof KITS)[number];

/** Files and folders of the package by the names that they get, and what to do with them. `%` stands for the folder. */
const CONTENT: Readonly<
  Record<Kit, { readonly files: Readonly<Record<string, string>>; readonly next: readonly string[] }>
> = {
  systemd: {
    files: { "tracegate.service": "install/systemd/tracegate.service", "gateway.yaml": "examples/default.yaml" },
    next: [
      "install -D -m 644 %/gateway.yaml /etc/tracegate/gateway.yaml",
      "install -m 644 %/tracegate.service /etc/systemd/system/",
      "systemctl daemon-reload && systemctl enable --now tracegate",
    ],
  },
  compose: {
    files: { "compose.yaml": "install/compose/compose.yaml", "config/gateway.yaml": "examples/default.yaml" },
    next: ["tracegate check -f %/config/gateway.yaml", "docker compose -f %/compose.yaml up -d"],
  },
  kubernetes: {
    files: {
      crds: "install/helm/tracegate/crds",
      "tracegate.yaml": "install/tracegate.yaml",
      "hello.yaml": "install/examples/hello.yaml",
    },
    next: [
      "kubectl apply --server-side -f %/crds",
      "kubectl apply --server-side -f %/tracegate.yaml",
      "kubectl apply -f %/hello.yaml",
    ],
  },
  grafana: {
    files: {
      "alerts.yaml": "install/observability/alerts.yaml",
      "grafana-dashboard.json": "install/observability/grafana-dashboard.json",
    },
    next: [
      "in the configuration of Prometheus: rule_files: [alerts.yaml], and port 15020 of each gateway among the targets of the job tracegate",
      "in Grafana: Dashboards, New, Import, %/grafana-dashboard.json",
    ],
  },
  "argo-cd": {
    files: { "argo-cd-health.yaml": "install/gitops/argo-cd-health.yaml" },
    next: ["kubectl apply --server-side --field-manager tracegate -f %/argo-cd-health.yaml"],
  },
  flux: {
    files: { "flux-health.yaml": "install/gitops/flux-health.yaml" },
    next: [
      "name %/flux-health.yaml in the patches of the kustomization.yaml that lists your Kustomizations, as its head shows",
    ],
  },
};

/** The page that explains each of them. */
const PAGES: Readonly<Record<Kit, string>> = {
  systemd: "docs/production.md#with-systemd",
  compose: "docs/production.md#with-compose",
  kubernetes: "docs/kubernetes.md",
  grafana: "docs/production.md#alerts-and-dashboard",
  "argo-cd": "docs/kubernetes.md#argo-cd-and-flux",
  flux: "docs/kubernetes.md#argo-cd-and-flux",
};

export function isKit(word: string): word is Kit {
  return (KITS as readonly string[]).includes(word);
}

/**
 * Writes the files of a kit into a folder, all or none, and returns what it wrote and what to do next, as text. Overwrites files only with
 * `force`. Throws CliError.
 */
export function init(kit: Kit, folder: string, force: boolean): string {
  const { files, next } = CONTENT[kit];
  const copies = Object.entries(files).flatMap(([name, source]) => filesIn(join(appRoot, source), name));
  const present = copies.filter(({ name }) => existsSync(join(folder, name))).map(({ name }) => join(folder, name));
  if (present.length > 0 && !force)
    throw new CliError(
      "failure",
      `${present.join(", ")}: there already; --force overwrites, --to FOLDER writes elsewhere`,
    );
  try {
    for (const { name, source } of copies) {
      mkdirSync(dirname(join(folder, name)), { recursive: true });
      cpSync(source, join(folder, name));
    }
  } catch (error) {
    throw new CliError("failure", `cannot write into ${folder}: ${fileProblem(error)}`);
  }
  const written = copies.map(({ name }) => `wrote ${join(folder, name)}\n`).join("");
  const steps = next.map((step) => `  ${step.replaceAll("%", folder)}\n`).join("");
  return `${written}\nNext:\n\n${steps}\nMore: ${join(appRoot, PAGES[kit])}\n`;
}

/** A file, or all files directly in a folder. Throws CliError if the installation does not have it. */
function filesIn(source: string, name: string): { readonly name: string; readonly source: string }[] {
  if (!existsSync(source))
    throw new CliError("failure", `${source} is missing: this installation has only what a gateway needs to run`);
  if (/\.\w+$/.test(name)) return [{ name, source }];
  return readdirSync(source).map((each) => ({ name: join(name, each), source: join(source, each) }));
}

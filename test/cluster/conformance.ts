/**
 * npm run conformance [-- [--no-image] [--no-install] [suite flag…]]
 * Runs the conformance suite of the Gateway API against tracegate in the test cluster (see run.ts) and writes the report to
 * docs/conformance/. The features are those that the GatewayClass claims in its status. Flags of the suite, such as
 * `-run-test HTTPRouteWeight`, run a part and write no report.
 */
import { spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { appRoot } from "../../src/base/app-root.ts";
import { SUPPORTED_FEATURES } from "../../src/controller/status/features.ts";
import { clusterScripts, prepareCluster } from "./lib/setup.ts";

const PROFILES = ["GATEWAY-HTTP", "GATEWAY-GRPC", "GATEWAY-TLS", "GATEWAY-TCP", "GATEWAY-UDP"];
const MODULE = "sigs.k8s.io/gateway-api@v1.6.3";
const FEATURES = `${appRoot}src/controller/translate/fixtures/gateway-api-features.txt`;
const REPORT = "docs/conformance/gateway-api-v1.6.3.yaml";

const args = process.argv.slice(2);
const own = new Set(["--no-image", "--no-install"]);
const flags = args.filter((each) => !own.has(each));
const scripts = clusterScripts();
if (scripts === undefined) throw new Error("the conformance suite runs in the test cluster only; unset KUBECONFIG");

checkFeatures();
await prepareCluster({ image: !args.includes("--no-image"), install: !args.includes("--no-install") });
const report = `${tmpdir()}/tracegate-conformance.yaml`;
const features = SUPPORTED_FEATURES.map(({ name }) => name).join();
const claims = ["-conformance-profiles", PROFILES.join(), "-supported-features", features];
const suite = ["tracegate", report, ...claims, ...identity(), ...flags];
const { status } = spawnSync(`${scripts}/conform`, suite, { stdio: "inherit" });
process.stdout.write(`log: ${report}.log\n`);
if (flags.length === 0) {
  mkdirSync(`${appRoot}docs/conformance`, { recursive: true });
  copyFileSync(report, `${appRoot}${REPORT}`);
  process.stdout.write(`report: ${REPORT}\n`);
}
process.exitCode = status ?? 1;

/**
 * Compares the list that a test checks the claimed features with against the module of the suite: the suite ignores unknown names.
 */
function checkFeatures(): void {
  const { stdout, status } = spawnSync("go", ["mod", "download", "-json", MODULE], { encoding: "utf8" });
  if (status !== 0) throw new Error(`go mod download ${MODULE} failed: ${stdout}`);
  const folder = `${(JSON.parse(stdout) as { Dir: string }).Dir}/pkg/features`;
  const source = readdirSync(folder).map((name) => readFileSync(`${folder}/${name}`, "utf8"));
  const names = source.flatMap((text) =>
    Array.from(text.matchAll(/^\s+Support\w+\b[^"\n]*= "(\w+)"/gm), ([, name = ""]) => name),
  );
  const listed = readFileSync(FEATURES, "utf8").split("\n").slice(1, -1);
  const [actual, expected] = [new Set(names), new Set(listed)];
  const wrong = [...[...actual].filter((name) => !expected.has(name)), ...listed.filter((name) => !actual.has(name))];
  if (wrong.length > 0) throw new Error(`${FEATURES} and ${MODULE} differ: ${wrong.join(", ")}`);
}

/** Whose implementation the report is about. */
function identity(): string[] {
  const { version } = JSON.parse(readFileSync(`${appRoot}package.json`, "utf8")) as { version: string };
  return [
    "-organization",
    "tracegate",
    "-project",
    "tracegate",
    "-version",
    version,
    "-url",
    "https://tracegate.dev",
    "-contact",
    "https://tracegate.dev",
  ];
}

/**
 * What `convert` writes and what the examples say, as an API server sees it: its YAML, its schemas, their rules in CEL and their limits. Nothing is created
 * but namespaces.
 */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { appRoot } from "../../src/base/app-root.ts";
import { Findings } from "../../src/cli/convert/findings.ts";
import { writeGatewayApi } from "../../src/cli/convert/gateway-api/write.ts";
import { convertNginx } from "../../src/cli/convert/nginx/convert.ts";
import { namespaceYaml } from "./lib/objects.ts";
import { apply, kubectl, must } from "./lib/tools.ts";

const files = globSync(
  ["test/golden/convert/*.gateway-api.yaml", "examples/kubernetes/*.yaml", "install/examples/*.yaml"],
  { cwd: appRoot },
).sort();
/** Kinds that a cluster has only if somebody installs them. */
const OF_OTHERS = /^apiVersion: cert-manager\.io\//m;

const texts = new Map(files.map((file) => [file, readFileSync(`${appRoot}${file}`, "utf8")]));
const wanted = new Set(
  [...texts.values()].flatMap((text) => [...text.matchAll(/\bnamespace: ([\w-]+)/g)].map(([, name = ""]) => name)),
);
let made: readonly string[] = [];

before(async () => {
  const there = new Set((await kubectl("get", "namespaces", "-o", "name")).split(/\s+/));
  made = [...wanted].filter((name) => !there.has(`namespace/${name}`));
  if (made.length > 0) await apply(made.map(namespaceYaml).join("---"));
});

after(async () => {
  if (made.length > 0) await kubectl("delete", "namespace", "--wait=false", ...made);
});

test("an API server accepts every object that convert writes and every example", async () => {
  assert.ok(files.length > 10);
  for (const [file, text] of texts) {
    const objects = text.split(/^---$/m).filter((each) => !OF_OTHERS.test(each));
    await assert.doesNotReject(must("kubectl", ["apply", "--dry-run=server", "-f", "-"], objects.join("---")), file);
  }
});

test("an API server accepts what a configuration beyond the limits of one object becomes", async () => {
  const many = (count: number, text: (i: number) => string): string =>
    Array.from({ length: count }, (_, i) => text(i)).join("\n");
  const long = "x".repeat(60);
  const names = many(70, (i) => `${long}${i}.${long}.${long}.example.com`);
  const limits = "auth_basic x; auth_basic_user_file /users; deny ::/0; client_max_body_size 1k;";
  const locations = many(
    45,
    (i) => `location /${long}${i} { ${limits} rewrite ^ /${i} break; proxy_pass http://${long}; }`,
  );
  const servers = many(
    80,
    (i) =>
      `server { listen ${8000 + i}; server_name s${i}.example; location ~ ^/a?/(.*)$ { proxy_pass http://b${i}.example; } }`,
  );
  const text = `upstream ${long} { server 10.0.0.1; server 10.0.0.2; }\nserver { server_name ${names};\n${locations} }\n${servers}`;
  const objects = writeGatewayApi(convertNginx("nginx.conf", text, undefined), new Findings());
  await must("kubectl", ["apply", "--dry-run=server", "-f", "-"], objects);
});

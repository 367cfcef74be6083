/**
 * Pairs of files: `NAME.in.yaml` is a Gateway, or a class whose Gateways share proxies, with ports, parameters of the class and of the Gateway,
 * and settings that differ from the defaults; `NAME.out.yaml` the objects that run its proxies. UPDATE_GOLDEN=1 writes the outputs.
 */
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { parse, stringify } from "yaml";
import { controllerSettings } from "../../src/controller/base/settings.ts";
import { parseParameters } from "../../src/controller/crd/parameters.ts";
import { gatewayObjects } from "../../src/controller/deploy/gateway-objects.ts";
import { type Fleet, ownFleet, sharedFleetIn } from "../../src/controller/translate/model/fleets.ts";
import { keyOfObject } from "../../src/kube/keys.ts";

const FOLDER = new URL("deploy/", import.meta.url);

for (const file of readdirSync(FOLDER).filter((each) => each.endsWith(".in.yaml")))
  test(`the objects of ${file}`, () => {
    const { gateway, shared, ports, parameters = [], env = {} } = parse(readFileSync(new URL(file, FOLDER), "utf8"));
    const layers = parameters.map((spec: unknown) => {
      const parsed = parseParameters(spec);
      assert.ok(parsed.ok, parsed.ok ? "" : parsed.problems.join("\n"));
      return parsed.value;
    });
    const settings = controllerSettings(env, "1.2.3", "host");
    const { className = gateway?.spec.gatewayClassName, namespace } = shared ?? {};
    const fleet: Fleet = shared === undefined ? ownFleet(keyOfObject(gateway)) : sharedFleetIn(namespace, className);
    const owner = { className, fleet, ...(gateway !== undefined && { gateway }) };
    const objects = gatewayObjects({ owner, ports, layers, settings, version: "1.2.3", xdsCa: "PEM of the CA\n" });
    const text = objects.map((each) => stringify(each, { aliasDuplicateObjects: false, lineWidth: 0 })).join("---\n");
    const path = new URL(file.replace(/\.in\.yaml$/, ".out.yaml"), FOLDER);
    if (process.env.UPDATE_GOLDEN !== undefined) writeFileSync(path, text);
    assert.ok(existsSync(path), `${path.pathname} is missing; run with UPDATE_GOLDEN=1 and read what it wrote`);
    assert.equal(text, readFileSync(path, "utf8"));
  });

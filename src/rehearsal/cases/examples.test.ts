/** The cases of the examples: each is what its example is there for, and a valid file of cases for editors too. */
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { Ajv2020 } from "ajv/dist/2020.js";
import { parse } from "yaml";
import { appRoot } from "../../base/app-root.ts";
import { invokeProgram } from "../../cli/fixtures/invoke.ts";
import { tracegate } from "../../main/commands.ts";

const FOLDER = `${appRoot}examples/`;
/** `# env: NAME=value`: what the example needs in its environment. */
const ENV = /^# env: (\w+)=(.*)$/gm;

const validate = new Ajv2020({ strict: false }).compile(
  JSON.parse(readFileSync(`${appRoot}schema/expectations.json`, "utf8")),
);
const names = readdirSync(`${FOLDER}cases`, { recursive: true, encoding: "utf8" }).filter((name) =>
  name.endsWith(".yaml"),
);

function environmentOf(example: string): Record<string, string> {
  const found = readFileSync(FOLDER + example, "utf8").matchAll(ENV);
  return Object.fromEntries([...found].map(([, key = "", value = ""]) => [key, value]));
}

test("most examples have cases", () => {
  assert.ok(names.length >= 30, `only ${names.length}`);
});

for (const name of readdirSync(FOLDER, { recursive: true, encoding: "utf8" }))
  if (name.endsWith(".yaml") && readFileSync(FOLDER + name, "utf8").startsWith("# tracegate config"))
    test(`examples/${name} has nothing that check --strict would report`, async () => {
      const env = { OIDC_COOKIE_SECRET: "0".repeat(64), ...environmentOf(name) };
      const { stdout, code } = await invokeProgram(
        tracegate,
        ["check", "-f", FOLDER + name, "--offline", "--strict"],
        "",
        env,
      );
      assert.equal(code, 0, stdout);
    });

for (const name of names)
  test(`examples/cases/${name}`, async () => {
    assert.ok(existsSync(FOLDER + name), `there is no examples/${name}`);
    const env = environmentOf(name);
    const cases = `${FOLDER}cases/${name}`;
    assert.ok(validate(parse(readFileSync(cases, "utf8"))), JSON.stringify(validate.errors));
    const { code, stdout, stderr } = await invokeProgram(
      tracegate,
      ["check", "-f", FOLDER + name, "--expect", cases],
      "",
      env,
    );
    assert.equal(stderr, "");
    assert.equal(code, 0, stdout);
  });

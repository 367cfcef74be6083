import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { invoke } from "../../../src/cli/fixtures/invoke.ts";
import { TestGateway } from "../../helpers/gateway.ts";

let gateway: TestGateway;
before(async () => {
  const routes = [{ name: "shop", backends: [{ host: "127.0.0.1:9" }] }];
  gateway = await TestGateway.start({ binds: [{ port: 0, listeners: [{ name: "web", routes }] }] });
});
after(() => gateway.stop());

function evaluate(...words: readonly string[]) {
  return invoke(["eval", ...words], "", { TGCTL_ADMIN: gateway.url("admin").replace("http://", "") });
}

const RULE = 'request.path.startsWith("/cart") && jwt.sub == "alice"';
const REQUEST = ["--", "http://shop.example/cart"];

test("the value of each part stands below the part that has it", async () => {
  const { code, stdout, stderr } = await evaluate(RULE, "--assume", 'jwt={"sub":"bob"}', ...REQUEST);
  assert.deepEqual([code, stderr], [0, ""]);
  assert.equal(
    stdout,
    `${RULE} → false
    request.path.startsWith("/cart") → true
        request.path → "/cart"
    jwt.sub == "alice" → false
        jwt.sub → "bob"
`,
  );
  const json = await evaluate(RULE, "--assume", 'jwt={"sub":"alice"}', "-o", "json", ...REQUEST);
  assert.equal((JSON.parse(json.stdout) as { value: unknown }).value, true);
});

test("without a value the command fails, and says what is missing or wrong", async () => {
  const unknown = await evaluate(RULE, ...REQUEST);
  assert.equal(unknown.code, 1);
  assert.match(unknown.stdout, /→ not known\n.*not known: the variable jwt; write --assume 'jwt=\{"sub":"a"\}'\n$/s);
  const typo = await evaluate("request.pth", ...REQUEST);
  assert.equal(typo.code, 2);
  assert.match(typo.stderr, /did you mean path\?\n.*request\.pth\n.*\^ line 1, column 9/);
  const gone = await evaluate("route", "--scope", "record", "--id", "0-99");
  assert.equal(gone.code, 1);
  assert.match(gone.stderr, /no record of the request/);
  const words = await evaluate("1", "gateway/web", "more");
  assert.match(words.stderr, /Only the resource follows the expression/);
});

/**
 * The pictures of the web view in README.md and docs/ui.md. `UPDATE_SCREENSHOTS=1 npm test -- test/e2e/admin/web-view-pictures.test.ts` takes them; without
 * it, what they show is shown, and the pages have them.
 */
import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { appRoot } from "../../../src/base/app-root.ts";
import { testBackend } from "../../helpers/backend.ts";
import { TestGateway } from "../../helpers/gateway.ts";
import { inChromium, look, shows } from "../../helpers/web-view.ts";

const FOLDER = "docs/pictures";
/** Bytes of a picture at most: it comes with each clone. */
const MOST = 150_000;
const WIDTH = 1200;

/** By the name of a picture: the place, what it shows, and the pages that have it. */
const PICTURES = {
  explain: { hash: "#/explain?url=http%3A%2F%2Fshop.example%2Fcart", text: "route shop", pages: ["docs/ui.md"] },
  request: { hash: "#/r/keys-7", text: "What decided", pages: ["docs/ui.md", "README.md"] },
} as const;

const backend = testBackend();
let gateway: TestGateway;

before(async () => {
  const stable = Number(new URL(`http://${backend.host}`).port);
  const backends = [{ host: `127.0.0.1:${stable}` }];
  const routes = [
    {
      name: "admin",
      matches: [{ path: { pathPrefix: "/admin" } }],
      policies: { authorization: { rules: [{ deny: 'request.path.startsWith("/admin/keys")' }] } },
      backends,
    },
    { name: "checkout", matches: [{ path: { pathPrefix: "/checkout" }, method: "POST" }], backends },
    {
      name: "shop",
      matches: [{ path: { pathPrefix: "/" } }],
      backends: [
        { host: `127.0.0.1:${stable}`, weight: 9 },
        { host: `localhost:${stable}`, weight: 1 },
      ],
    },
  ];
  gateway = await TestGateway.start({ binds: [{ port: 0, listeners: [{ name: "web", routes }] }] });
  const send = (path: string, id: string) =>
    fetch(`http://127.0.0.1:${gateway.port()}${path}`, { headers: { "x-request-id": id } }).then((answer) =>
      answer.text(),
    );
  for (const id of ["keys-6", "keys-7"]) await send("/admin/keys/7", id);
});
after(() => gateway?.stop());

const open = inChromium();

for (const [name, { hash, text, pages }] of Object.entries(PICTURES))
  test(`the picture ${name}`, async (t) => {
    for (const page of pages)
      for (const scheme of ["light", "dark"])
        assert.ok(readFileSync(`${appRoot}${page}`, "utf8").includes(`pictures/${name}-${scheme}.png`), page);
    const page = await open(t, `${gateway.url("admin")}/ui/${hash}`);
    if (page === undefined) return;
    await shows(page, text);
    // Names that differ from run to run stand for what readers have.
    await page.evaluate(`(() => {
      const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
      for (let node = texts.nextNode(); node !== null; node = texts.nextNode())
        node.data = node.data.replaceAll(${JSON.stringify(gateway.folder)}, "/etc/tracegate").replaceAll(":${new URL(`http://${backend.host}`).port}", ":8080");
    })()`);
    for (const scheme of ["light", "dark"] as const) {
      await look(page, scheme, WIDTH);
      const { data } = await page.send("Page.captureScreenshot", { format: "png" });
      const picture = Buffer.from(String(data), "base64");
      assert.ok(picture.length < MOST, `${name}-${scheme}.png has ${picture.length} bytes`);
      if (process.env.UPDATE_SCREENSHOTS !== "1") continue;
      mkdirSync(`${appRoot}${FOLDER}`, { recursive: true });
      writeFileSync(`${appRoot}${FOLDER}/${name}-${scheme}.png`, picture);
    }
  });

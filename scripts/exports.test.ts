import assert from "node:assert/strict";
import { test } from "node:test";
import { unusedExports } from "./exports.ts";

test("an export counts as used if an importer names it, or takes its module as a whole and somebody names it", () => {
  const { problems } = unusedExports(
    new Map([
      [
        "src/net/a.ts",
        [
          "export function used() {}",
          "export async function alone() {}",
          "export interface Shape {}",
          'export { again, type Once } from "./b.ts";',
          "// export const comment = 1;",
        ].join("\n"),
      ],
      [
        "src/net/b.ts",
        "export const again = 1;\nexport type Once = 2;\nexport const late = 3;\nexport const $dead = 4;",
      ],
      // Mentions what it does not import: `alone` here is another one.
      ["src/net/c.ts", 'import { used, type Once as Mine } from "./a.ts";\nconst alone = used();'],
      ["src/net/d.ts", 'const load = () => import("./b.ts");'],
      ["src/net/e.test.ts", "load().late;"],
    ]),
  );
  assert.deepEqual(
    problems.map((problem) => problem.replace(/;.*/, "")),
    [
      "src/net/a.ts:2: nothing imports alone",
      "src/net/a.ts:3: nothing imports Shape",
      "src/net/a.ts:4: nothing imports again",
      "src/net/b.ts:4: nothing imports $dead",
    ],
  );
});

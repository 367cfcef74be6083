import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../../test/helpers/property.ts";
import type { PathMatch } from "../../ir/ir.ts";
import { compareMatches, lengthOf, withoutTrailingSlashes } from "../../ir/precedence.ts";
import type { Json } from "./converted.ts";
import { type PathShape, pathsInOrder } from "./paths.ts";

const TEXTS = ["/", "/A", "/a", "/a/", "/ab", "/a/b", "/a/b/", "/abc", "/b", "/a/bc"];
const REGEXES = ["/a.*", ".*b", "/[ab]", "/a/b(?:/.*)?"];

const shapes = fc.array(
  fc.oneof(
    fc.record(
      { type: fc.constantFrom("exact", "segments"), path: fc.constantFrom(...TEXTS), isCaseless: fc.constant(true) },
      { requiredKeys: ["type", "path"] },
    ),
    fc.record({ type: fc.constant("beyond"), path: fc.constantFrom("/a", "/ab", "/a/b") }),
    fc.record({ type: fc.constant("below"), path: fc.constantFrom("/a/", "/a/b/") }),
    fc.record({ type: fc.constant("regex"), path: fc.constantFrom(...REGEXES) }),
  ),
  { maxLength: 8 },
) as fc.Arbitrary<PathShape[]>;

/** What the words of `PathShape` say. */
function fits({ type, path: written, isCaseless }: PathShape, given: string): boolean {
  const [path, text] = isCaseless ? [written.toLowerCase(), given.toLowerCase()] : [written, given];
  const rest = text.startsWith(path) ? text.slice(path.length) : undefined;
  switch (type) {
    case "exact":
      return text === path;
    case "segments":
      return `${withoutTrailingSlashes(text)}/`.startsWith(`${withoutTrailingSlashes(path)}/`);
    case "below":
      return rest !== undefined;
    case "beyond":
      return rest !== undefined && /^[^/]/.test(rest);
    case "regex":
      return new RegExp(`^(?:${path.replace("(?i)", "")})$`, path.startsWith("(?i)") ? "i" : "").test(text);
  }
}

function matchOf({ exact, pathPrefix, regex }: Json): PathMatch {
  if (exact !== undefined) return { type: "exact", value: String(exact) };
  return pathPrefix === undefined
    ? { type: "regex", value: String(regex) }
    : { type: "pathPrefix", value: String(pathPrefix) };
}

function fitsMatch({ type, value }: PathMatch, text: string): boolean {
  return fits({ type: type === "pathPrefix" ? "segments" : type, path: value }, text);
}

test("routes with these paths are chosen in the order of the shapes", () => {
  fc.assert(
    fc.property(shapes, fc.constantFrom(...TEXTS, "/abcd", "/a/bcd", "/a/b/c", "/c"), (wanted, text) => {
      const matches = pathsInOrder(wanted).map((path, matchIndex) => {
        const match = matchOf(path);
        const rest = { method: undefined, headers: [], query: [], route: { key: "" } };
        return { ...rest, matchIndex, path: match, length: lengthOf(match) };
      });
      const chosen = matches.filter(({ path }) => fitsMatch(path, text)).sort(compareMatches)[0]?.matchIndex;
      const first = wanted.findIndex((each) => fits(each, text));
      assert.equal(chosen ?? -1, first, JSON.stringify(matches));
    }),
    { numRuns: 2000 },
  );
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { STANDARD_ENVIRONMENT } from "../../cel/index.ts";
import { latin1 } from "../../http/message/syntax.ts";
import { contextOf } from "../testing/context.ts";
import type { Form } from "./schema.ts";
import { compileTemplate } from "./template.ts";

const HOSTILE = `/"><script>alert('1')</script>&`;

function render(page: string, form: Form): string {
  const { variables } = contextOf({ path: HOSTILE, headers: ["x-a", latin1("1")] });
  return compileTemplate(page, form, STANDARD_ENVIRONMENT)(() => variables).bytes.toString();
}

test("what a client sends is text in HTML and a value in JSON", () => {
  const escaped = "/&quot;&gt;&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;&amp;";
  assert.equal(render('<p title="{{request.path}}">{{ request.path }}', "html"), `<p title="${escaped}">${escaped}`);
  assert.deepEqual(JSON.parse(render('{"path": {{ request.path }}, "n": {{ [1, 2u] }}, "no": {{ jwt }}}', "json")), {
    path: HOSTILE,
    n: [1, 2],
    no: null,
  });
  assert.equal(render("{{ request.path }}", "text"), HOSTILE);
});

test("an expression that fails inserts nothing, and its failure is reported", () => {
  const template = compileTemplate('a{{ request.headers["x-none"] }}b{{ jwt.sub }}', "html", STANDARD_ENVIRONMENT);
  const { bytes, failures } = template(() => contextOf().variables);
  assert.equal(bytes.toString(), "ab");
  assert.deepEqual(
    failures.map((failure) => failure.split(": ")[0]),
    ['request.headers["x-none"]', "jwt.sub"],
  );
  assert.equal(render('[{{ request.headers["x-none"] }}]', "json"), "[null]");
});

test("braces inside a string do not end the expression; a string can insert braces", () => {
  assert.equal(render(`{{ "}}" }}|{{ 'it\\'s }}' }}|{{ "{{" }}|}}`, "text"), "}}|it's }}|{{|}}");
});

test("a page that cannot work is refused, with its line", () => {
  for (const [page, form, message] of [
    ["a\n\n{{ requst.path }}", "html", /^line 3: \{\{ requst\.path \}\}: unknown variable requst/],
    ["a\n{{ request.path", "text", /^line 2: \{\{ has no \}\}/],
    ['{{ "}}', "text", /^line 1: .* no closing quote/],
    ["{{ request.body }}", "html", /^line 1: .*pages cannot read a body/],
    ['{"path": "{{ request.path }}"}', "json", /^is not valid JSON: .*write expressions without quotes/],
    ["{", "json", /^is not valid JSON: [^;]*$/],
  ] as const)
    assert.throws(() => compileTemplate(page, form, STANDARD_ENVIRONMENT), { message }, page);
});

/**
 * The tables of configuration fields in docs/configuration.md and docs/policies/. Every shape is described once: a policy, with
 * what only it uses, on its own page, everything else in docs/configuration.md. Other places link there.
 */
import { type JsonSchema, policyDefinition, refName } from "./config-schema.ts";

/** Path, relative to docs/, of the page with everything that is not about one policy. */
const CONFIGURATION = "configuration.md";
/** Title of the section about the file itself. */
const TOP_LEVEL = "Top level";
/** An object that has all fields of another gets one row for them instead, if there are at least this many. */
const MIN_FIELDS = 3;

/** An object or a choice, with the heading under which it is described. */
interface Section {
  readonly title: string;
  readonly schema: JsonSchema;
}

type Fields = Readonly<Record<string, JsonSchema>>;

/** Describes the parts of one JSON Schema, which is spread over several pages. */
export class ConfigReference {
  readonly #root: JsonSchema;
  readonly #defs: Readonly<Record<string, JsonSchema>>;
  /** Definition → the page that describes it, relative to docs/. */
  readonly #homes: ReadonlyMap<string, string>;
  /** Kinds of policies by their definition. */
  readonly #kinds: ReadonlyMap<string, string>;

  constructor(root: JsonSchema, kinds: readonly string[]) {
    this.#root = root;
    this.#defs = root.$defs ?? {};
    this.#kinds = new Map(kinds.map((kind) => [policyDefinition(kind), kind]));
    this.#homes = this.#findHomes();
  }

  /** The sections of docs/configuration.md. */
  configuration(): string {
    return this.#render([{ title: TOP_LEVEL, schema: this.#root }, ...this.#sectionsOf(CONFIGURATION)], CONFIGURATION);
  }

  /** The sections about a kind of policy. */
  policy(kind: string): string {
    const page = policyPage(kind);
    const definition = this.#definition(policyDefinition(kind));
    const name = refName(definition);
    const { description: _description, ...schema } = name === undefined ? definition : this.#definition(name);
    if (Object.keys(schema.properties ?? {}).length === 0 && schema.type === "object") return "It has no fields.\n";
    if (schema.title !== undefined) return `Its value is a ${this.#type(schema, page)}.\n`;
    const sections = this.#sectionsOf(page);
    if (schema.type === "array")
      return `Its value is a ${this.#type(schema, page)}.\n\n${this.#render(sections, page)}`;
    return this.#render([{ title: kind, schema }, ...sections], page);
  }

  /** What a kind of policy does, in a sentence or two. */
  describe(kind: string): string {
    return this.#describe(this.#definition(policyDefinition(kind)));
  }

  #definition(name: string): JsonSchema {
    const schema = this.#defs[name];
    if (schema === undefined) throw new Error(`the configuration's schema has no definition ${name}`);
    return schema;
  }

  /** A definition that only one policy uses is described on the page of that policy; one of several on that of the policy that it is named after. */
  #findHomes(): Map<string, string> {
    const users = new Map<string, Set<string>>();
    const visit = (schema: JsonSchema, page: string): void => {
      const name = refName(schema);
      for (const each of subschemas(schema)) visit(each, page);
      if (name === undefined || this.#kinds.has(name)) return;
      const pages = users.get(name) ?? new Set();
      users.set(name, pages);
      if (pages.has(page)) return;
      pages.add(page);
      visit(this.#definition(name), page);
    };
    const { $defs: _defs, ...file } = this.#root;
    visit(file, CONFIGURATION);
    for (const [name, kind] of this.#kinds) visit(this.#definition(name), policyPage(kind));
    const homes = Array.from(users, ([name, pages]) => {
      const [page = CONFIGURATION, ...others] = pages;
      const named = [...this.#kinds.values()].find((kind) => name.toLowerCase().startsWith(kind.toLowerCase()));
      const own = named === undefined || pages.has(CONFIGURATION) ? undefined : policyPage(named);
      return [name, others.length === 0 ? page : own !== undefined && pages.has(own) ? own : CONFIGURATION] as const;
    });
    return new Map([...homes, ...Array.from(this.#kinds, ([name, kind]) => [name, policyPage(kind)] as const)]);
  }

  #sectionsOf(page: string): Section[] {
    return Object.entries(this.#defs)
      .filter(([name, schema]) => this.#homes.get(name) === page && !this.#kinds.has(name) && this.#hasSection(schema))
      .map(([title, schema]) => ({ title, schema }));
  }

  /** Texts, numbers and lists of them are described where they are used. */
  #hasSection({ properties, anyOf = [] }: JsonSchema): boolean {
    return properties !== undefined || anyOf.some((each) => each.properties !== undefined || each.$ref !== undefined);
  }

  #render(sections: readonly Section[], page: string): string {
    return sections
      .flatMap((section) => [...nested(section)])
      .map((section) => this.#section(section, page))
      .join("\n");
  }

  #section({ title, schema }: Section, page: string): string {
    const heading = `## ${/^[A-Z]/.test(title) && !title.includes(".") ? title : `\`${title}\``}\n`;
    const about = schema.description === undefined ? "" : `\n${schema.description}\n`;
    const { anyOf } = schema;
    if (anyOf === undefined) return `${heading}${about}${this.#table(title, schema, page)}`;
    // An alternative with one field is named by it; one with several is described by a table.
    const tables = anyOf.filter(hasSeveralFields);
    const choices = anyOf
      .filter((each) => !tables.includes(each))
      .map((each) => `- ${this.#alternative(title, each, page)}`);
    const alternatives = tables.map((each) => this.#table(title, each, page));
    if (choices.length > 0) alternatives.push(`\n${choices.join("\n")}\n`);
    const intro = tables.length === 0 ? "\nOne of:\n" : "";
    return `${heading}${about}${intro}${alternatives.join("\nOr:\n")}`;
  }

  #table(title: string, schema: JsonSchema, page: string): string {
    const { properties = {}, required = [] } = schema;
    const sets = this.#fieldSets(properties);
    const elsewhere = new Set(sets.flatMap((name) => Object.keys(this.#fieldsOf(name))));
    const rows = Object.entries(properties)
      .filter(([name]) => !elsewhere.has(name))
      .map(([name, field]) => {
        const fallback = required.includes(name) ? "required" : defaultOf(field);
        const type = this.#type(field, page, pathOf(title, name));
        return `| \`${name}\` | ${type} | ${fallback} | ${cell(this.#describe(field))} |`;
      });
    const except = (name: string): string =>
      "shadow" in this.#fieldsOf(name) && !("shadow" in properties) ? " except `shadow`" : "";
    rows.push(...sets.map((name) => `| fields of ${this.#link(name, page)}${except(name)} | | | |`));
    if (rows.length === 0) return "";
    return `\n| Field | Type | Default | Meaning |\n|---|---|---|---|\n${rows.join("\n")}\n`;
  }

  /** The definitions whose fields an object has besides others, such as the policies of a gateway; the largest first. */
  #fieldSets(properties: Fields): string[] {
    const count = Object.keys(properties).length;
    const names = Object.keys(this.#defs).filter((name) => {
      const { shadow: whole, ...others } = this.#fieldsOf(name);
      // Alternatives of a policy have its fields; in shadow are all of them or none.
      const fields = whole === undefined || !("shadow" in properties) ? others : { ...others, shadow: whole };
      const size = Object.keys(fields).length;
      return size >= MIN_FIELDS && size < count && includes(properties, fields);
    });
    // A set that is part of a larger one is described there.
    return names.filter(
      (name) =>
        !names.some((other) => {
          const [fields, others] = [this.#fieldsOf(name), this.#fieldsOf(other)];
          return Object.keys(others).length > Object.keys(fields).length && includes(others, fields);
        }),
    );
  }

  /** The fields of a definition; of a choice, those of its alternative that has several. */
  #fieldsOf(name: string): Fields {
    const { properties, anyOf } = this.#definition(name);
    return properties ?? anyOf?.find(hasSeveralFields)?.properties ?? {};
  }

  #describe(schema: JsonSchema): string {
    const name = refName(schema);
    return schema.description ?? (name === undefined ? "" : this.#describe(this.#definition(name)));
  }

  #alternative(title: string, schema: JsonSchema, page: string): string {
    const [field] = Object.entries(schema.properties ?? {});
    const about = (text: string): string => (text === "" ? "" : `: ${text}`);
    if (field === undefined) return `${this.#type(schema, page)}${about(this.#describe(schema))}`;
    const [name, value] = field;
    return `\`${name}\` (${this.#type(value, page, pathOf(title, name))})${about(this.#describe(value))}`;
  }

  /** `section` is the title of the section about an object without a name of its own. */
  #type(schema: JsonSchema, page: string, section?: string): string {
    const name = refName(schema);
    if (name !== undefined) {
      const definition = this.#definition(name);
      return this.#hasSection(definition) || this.#kinds.has(name)
        ? this.#link(name, page)
        : this.#type(definition, page);
    }
    // A size: the bounds of its number are those of its texts too.
    if (schema.anyOf !== undefined && schema.title !== undefined)
      return schema.title + schema.anyOf.map(range).join("");
    if (schema.anyOf !== undefined)
      return [...new Set(schema.anyOf.map((each) => this.#type(each, page, section)))].join(" or ");
    if (schema.enum !== undefined) return schema.enum.map((value) => `\`${String(value)}\``).join(", ");
    if (schema.const !== undefined) return `\`${String(schema.const)}\``;
    if (schema.items !== undefined) return `list of ${this.#type(schema.items, page, section)}`;
    if (schema.properties !== undefined) {
      if (Object.keys(schema.properties).length === 0) return "`{}`";
      return section === undefined ? "object" : `[object](#${anchor(section)})`;
    }
    if (typeof schema.additionalProperties === "object")
      return `map to ${this.#type(schema.additionalProperties, page, section)}`;
    if (schema.type === "object") return "`{}`";
    if (schema.type === "integer" || schema.type === "number") return `number${range(schema)}`;
    return schema.title ?? (schema.type === undefined ? "any" : String(schema.type));
  }

  /** A link from a page to the section about a definition. */
  #link(name: string, page: string): string {
    const kind = this.#kinds.get(name);
    const home = this.#homes.get(name) ?? CONFIGURATION;
    const section = `#${anchor(kind ?? name)}`;
    if (home === page) return `[${kind ?? name}](${section})`;
    const target =
      page === CONFIGURATION ? home : home === CONFIGURATION ? `../${home}` : home.replace("policies/", "");
    return `[${kind ?? name}](${target}${kind === undefined ? section : ""})`;
  }
}

/** `backendTLS` → `policies/backend-tls.md` */
export function policyPage(kind: string): string {
  return `policies/${kebabCase(kind)}.md`;
}

/** `backendTLS` → `backend-tls` */
export function kebabCase(kind: string): string {
  return kind.replace(/([a-z])([A-Z])/g, "$1-$2").toLowerCase();
}

/** Text in a cell of a table. */
export function cell(text: string): string {
  return text.replaceAll("|", "\\|").replaceAll("\n", " ");
}

function subschemas({
  properties = {},
  anyOf = [],
  allOf = [],
  items,
  additionalProperties,
}: JsonSchema): JsonSchema[] {
  const others = [items, additionalProperties].filter((each) => typeof each === "object");
  return [...Object.values(properties), ...anyOf, ...allOf, ...others];
}

/** The object itself, then those that it holds without a name of their own, by their path. */
function* nested({ title, schema }: Section): Generator<Section> {
  yield { title, schema };
  const objects = [schema, ...(schema.anyOf ?? [])];
  for (const [name, field] of objects.flatMap(({ properties = {} }) => Object.entries(properties))) {
    const object = field.items ?? field;
    const path = pathOf(title, name);
    if (object.properties !== undefined) yield* nested({ title: path, schema: object });
    else if (object.anyOf?.some((each) => each.properties !== undefined))
      yield* nested({ title: path, schema: object });
  }
}

function hasSeveralFields({ properties = {} }: JsonSchema): boolean {
  return Object.keys(properties).length > 1;
}

function pathOf(title: string, name: string): string {
  return title === TOP_LEVEL ? name : `${title}.${name}`;
}

/** Whether an object has all of these fields, each as it is described there. */
function includes(properties: Fields, fields: Fields): boolean {
  return Object.entries(fields).every(([name, field]) => JSON.stringify(properties[name]) === JSON.stringify(field));
}

/** GitHub's anchors: lower case, without punctuation. */
function anchor(title: string): string {
  return title.toLowerCase().replace(/[^\w-]/g, "");
}

function range({ minimum, maximum }: JsonSchema): string {
  const least = minimum === undefined || minimum === Number.MIN_SAFE_INTEGER ? undefined : minimum;
  const most = maximum === undefined || maximum === Number.MAX_SAFE_INTEGER ? undefined : maximum;
  if (least !== undefined && most !== undefined) return ` ${least}–${most}`;
  return least !== undefined ? ` ≥ ${least}` : "";
}

function defaultOf({ default: value }: JsonSchema): string {
  if (value === undefined || (typeof value === "object" && value !== null)) return "";
  return value === "" ? "empty" : `\`${String(value)}\``;
}

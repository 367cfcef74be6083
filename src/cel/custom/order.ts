/** The order in which functions can be compiled: what is called comes first, and nothing calls itself. */
import { definitionFor, formatSignature } from "../environment/custom-function.ts";
import { children, type Node } from "../syntax/ast.ts";
import { CelError } from "../syntax/cel-error.ts";
import type { Definition } from "./read-definitions.ts";

/** Every function after those that it calls. */
interface CallOrder {
  readonly order: readonly Definition[];
  /** Functions that call themselves, directly or through others. */
  readonly recursive: ReadonlySet<Definition>;
}

/** Sorts functions so that each comes after those that it calls. Recursive ones are reported with the chain of calls. */
export function orderByCalls(
  definitions: readonly Definition[],
  text: string,
  report: (problem: CelError) => void,
): CallOrder {
  const byName = Map.groupBy(definitions, ({ name }) => name);
  const order = new Set<Definition>();
  const recursive = new Set<Definition>();
  const visit = (definition: Definition, path: readonly Definition[]): void => {
    if (order.has(definition)) return;
    const inside = [...path, definition];
    for (const { name, member, count, at } of callsIn(definition.body)) {
      const called = definitionFor(byName.get(name), member, count);
      if (called === undefined) continue;
      const start = inside.indexOf(called);
      if (start === -1) {
        visit(called, inside);
        continue;
      }
      const cycle = inside.slice(start);
      if (!cycle.every((each) => recursive.has(each))) {
        const way = [...cycle, called].map(formatSignature).join(" → ");
        report(new CelError(`functions cannot call themselves: ${way}`, text, at));
      }
      for (const each of cycle) recursive.add(each);
    }
    order.add(definition);
  };
  for (const definition of definitions) visit(definition, []);
  return { order: [...order], recursive };
}

interface CallSite {
  readonly name: string;
  readonly member: boolean;
  /** Number of arguments, including the receiver. */
  readonly count: number;
  readonly at: number;
}

function* callsIn(node: Node | undefined): Iterable<CallSite> {
  if (node === undefined) return;
  for (const child of children(node)) yield* callsIn(child);
  if (node.kind !== "call") return;
  const member = node.target !== undefined;
  yield { name: node.name.replace(/^\./, ""), member, count: node.args.length + (member ? 1 : 0), at: node.at };
}

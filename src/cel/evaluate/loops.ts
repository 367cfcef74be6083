/** The macros that iterate: `all`, `exists`, `filter`, `map` and theirs, charged for each turn. */
import type { Loop } from "../syntax/ast.ts";
import { adopt, isList, isMap, kindOf, mapGet, mapKeys } from "../values/access.ts";
import { charge } from "../values/budget.ts";
import { Failure, fail, missing, worse } from "../values/failure.ts";
import { CelMap } from "../values/map.ts";
import type { CelValue } from "../values/types.ts";
import { costOf } from "./cost.ts";
import type { Compilation, Evaluator } from "./evaluator.ts";

/** Steps per iteration, in addition to those of the body; a key of a map is looked up, and the result is collected. */
const TURN = 64;

/**
 * Gets each result of the body with the values of the loop's variables; a returned value ends the loop. Absence in one element is
 * an ordinary failure of the whole loop (`hardened`): otherwise a client could leave out a key of one element to make a condition
 * about the others unmet. For `exists` it remains absence, because that looks at all other elements too.
 */
interface Collector {
  add(result: CelValue | Failure, key: CelValue, value: CelValue): CelValue | Failure | undefined;
  finish(): CelValue | Failure;
}

/** Macros that iterate over a list or map. */
export function compileLoop(node: Loop, { compile, checked }: Compilation): Evaluator {
  const [range, body] = [compile(node.range), compile(node.body)];
  const filter = node.filter === undefined ? undefined : compile(node.filter);
  const slot = checked.slots.get(node) ?? 0;
  const both = node.variables.length === 2;
  const turn = TURN + costOf(node.body) + (node.filter === undefined ? 0 : costOf(node.filter));
  const collectorOf = COLLECTORS[node.loop];
  const { loop, at } = node;
  const onlyMaps = loop === "mapValues" || loop === "filterKeys";
  const notBool = new Failure("no such overload: the condition of the loop is neither true nor false", at);
  return (activation, slots) => {
    const container = range(activation, slots);
    if (container instanceof Failure) return container;
    const items = isList(container) && !onlyMaps ? container : undefined;
    if (items === undefined && !isMap(container))
      return container === null
        ? missing(`${loop} cannot go through null`, at)
        : new Failure(`no such overload: ${loop} of ${kindOf(container)}`, at);
    const map = items === undefined && isMap(container) ? container : undefined;
    const keys = map === undefined ? undefined : mapKeys(map);
    const collector = collectorOf();
    const count = (items ?? keys ?? []).length;
    for (let i = 0; i < count; i++) {
      charge(turn);
      const key = keys === undefined ? BigInt(i) : (keys[i] as CelValue);
      const value = map === undefined ? adopt(items?.[i]) : (mapGet(map, key) ?? null);
      slots[slot] = both || (items === undefined && loop !== "mapValues") ? key : value;
      if (both) slots[slot + 1] = value;
      if (filter !== undefined) {
        const wanted = filter(activation, slots);
        if (wanted instanceof Failure) return wanted.hardened();
        if (typeof wanted !== "boolean") return notBool;
        if (!wanted) continue;
      }
      const early = collector.add(
        body(activation, slots),
        key,
        items === undefined && !both && !onlyMaps ? key : value,
      );
      if (early !== undefined) return early instanceof Failure ? early.placed(at) : early;
    }
    return collector.finish();
  };
}

const NOT_BOOL = fail("no such overload: the condition of the loop is neither true nor false");

/** `all` and `exists`: the deciding value wins over errors, whatever the order. */
function quantifier(deciding: boolean): () => Collector {
  return () => {
    let failure: Failure | undefined;
    return {
      add(result) {
        if (result === deciding) return deciding;
        if (result instanceof Failure) failure = worse(failure, deciding ? result : result.hardened());
        else if (typeof result !== "boolean") failure = worse(failure, NOT_BOOL);
        return undefined;
      },
      finish: () => failure ?? !deciding,
    };
  };
}

function listOf(): Collector {
  const list: CelValue[] = [];
  return {
    add(result) {
      if (result instanceof Failure) return result.hardened();
      list.push(result);
      return undefined;
    },
    finish: () => list,
  };
}

function mapOf(put: (map: CelMap, result: CelValue, key: CelValue) => Failure | undefined): () => Collector {
  return () => {
    const map = new CelMap();
    return {
      add: (result, key) => (result instanceof Failure ? result.hardened() : put(map, result, key)),
      finish: () => map,
    };
  };
}

function filterKeys(): Collector {
  const map = new CelMap();
  return {
    add(result, key, value) {
      if (result instanceof Failure) return result.hardened();
      if (typeof result !== "boolean") return NOT_BOOL;
      if (result) map.add(key, value);
      return undefined;
    },
    finish: () => map,
  };
}

function existsOne(): Collector {
  let count = 0;
  return {
    add(result) {
      if (result instanceof Failure) return result.hardened();
      if (typeof result !== "boolean") return NOT_BOOL;
      if (result) count++;
      return undefined;
    },
    finish: () => count === 1,
  };
}

function filter(): Collector {
  const list: CelValue[] = [];
  return {
    add(result, _, value) {
      if (result instanceof Failure) return result.hardened();
      if (typeof result !== "boolean") return NOT_BOOL;
      if (result) list.push(value);
      return undefined;
    },
    finish: () => list,
  };
}

function put(map: CelMap, result: CelValue, key: CelValue): Failure | undefined {
  return map.add(key, result) ? undefined : fail("duplicate key");
}

function putEntry(map: CelMap, result: CelValue): Failure | undefined {
  if (!isMap(result)) return fail("transformMapEntry needs a map with one entry");
  const keys = mapKeys(result);
  const [key] = keys;
  if (key === undefined || keys.length !== 1) return fail("transformMapEntry needs a map with one entry");
  return put(map, mapGet(result, key) ?? null, key);
}

const COLLECTORS: Readonly<Record<Loop["loop"], () => Collector>> = {
  all: quantifier(false),
  exists: quantifier(true),
  existsOne,
  filter,
  map: listOf,
  transformList: listOf,
  transformMap: mapOf(put),
  transformMapEntry: mapOf(putEntry),
  mapValues: mapOf(put),
  filterKeys,
};

import { digestAt, type PackedAddresses, type PackedTexts, parseText } from "../ir/packed-ir.ts";
import { type Service, ServiceIndex, type Workload } from "../upstream/discovery.ts";

/**
 * Services and workloads of one configuration as objects. Unchanged ones are the same objects as in the configuration in effect, so
 * a change of one endpoint among thousands costs parsing one.
 */
export class AddressBook {
  readonly workloads: readonly Workload[];
  readonly index: ServiceIndex;
  readonly #packed: PackedAddresses;
  readonly #services: ReadonlyMap<string, Service>;
  readonly #workloads: ReadonlyMap<string, Workload>;

  private constructor(packed: PackedAddresses, before: AddressBook | undefined) {
    this.#packed = packed;
    const services = parseAll(packed.services, before === undefined ? undefined : before.#services);
    const workloads = parseAll(packed.workloads, before === undefined ? undefined : before.#workloads);
    this.#services = services.byDigest;
    this.#workloads = workloads.byDigest;
    this.workloads = workloads.list;
    this.index = new ServiceIndex(services.list, this.workloads);
  }

  /** Returns `before`, the address book of the configuration in effect, if nothing differs. */
  static read(packed: PackedAddresses, before?: AddressBook): AddressBook {
    const same =
      before !== undefined &&
      packed.services.digest === before.#packed.services.digest &&
      packed.workloads.digest === before.#packed.workloads.digest;
    return same ? before : new AddressBook(packed, before);
  }
}

interface Parsed<Value> {
  readonly list: readonly Value[];
  readonly byDigest: ReadonlyMap<string, Value>;
}

function parseAll<Value>(packed: PackedTexts, before: ReadonlyMap<string, Value> = new Map()): Parsed<Value> {
  const list: Value[] = [];
  const byDigest = new Map<string, Value>();
  for (let i = 0; i < packed.count; i++) {
    const digest = digestAt(packed, i);
    const value = before.get(digest) ?? (parseText(packed, i) as Value);
    list.push(value);
    byDigest.set(digest, value);
  }
  return { list, byDigest };
}

/** Decimal units, and binary ones with an `i` (IEC 80000-13). `KB` is how most people write kB. */
const UNITS: Readonly<Record<string, number>> = {
  B: 1,
  kB: 1e3,
  KB: 1e3,
  MB: 1e6,
  GB: 1e9,
  TB: 1e12,
  KiB: 2 ** 10,
  MiB: 2 ** 20,
  GiB: 2 ** 30,
  TiB: 2 ** 40,
};

/** The texts that `parseSize` reads. Without `(?:`, which patterns of CustomResourceDefinitions cannot have. */
export const SIZE_PATTERN = new RegExp(`^(\\d+(\\.\\d+)?)(${Object.keys(UNITS).join("|")})?$`);

/** The bytes of a size such as `10MB`, `1.5GiB` or `512`, rounded to whole ones; `undefined` if the text is anything else. */
export function parseSize(text: string): number | undefined {
  const [, number, , unit = "B"] = SIZE_PATTERN.exec(text) ?? [];
  if (number === undefined) return undefined;
  const bytes = Math.round(Number(number) * (UNITS[unit] ?? Number.NaN));
  return Number.isSafeInteger(bytes) ? bytes : undefined;
}

/** `64KiB` for 65536; a number without a unit if no binary one divides it. */
export function formatSize(bytes: number): string {
  const unit = ["TiB", "GiB", "MiB", "KiB"].find((each) => bytes > 0 && bytes % (UNITS[each] ?? 0) === 0);
  return unit === undefined ? `${bytes}` : `${bytes / (UNITS[unit] ?? 1)}${unit}`;
}

/** A number, the letter of a prefix, the rest of the prefix, and the unit. */
const LIKE_A_SIZE = /^(\d+(?:\.\d+)?)\s*(?:([kmgt])(ilo|ega|iga|era|ibi|ebi|i)?)?\s*(b|bytes?)?$/i;

/** What a text that is not a size probably means: `10MB` for `10 megabytes`, `10MB` or `10MiB` for `10m`. Empty if that is unclear. */
export function intendedSizes(text: string): readonly string[] {
  const [, number, letter = "", prefix, unit] = LIKE_A_SIZE.exec(text) ?? [];
  if (number === undefined) return [];
  const decimal = `${number}${letter.toUpperCase()}B`;
  const binary = `${number}${letter.toUpperCase()}iB`;
  if (letter === "" || /^(ilo|ega|iga|era)$/i.test(prefix ?? "")) return [decimal];
  if (prefix !== undefined) return [binary];
  return unit === undefined ? [decimal, binary] : [decimal];
}

const NONE: ReadonlyMap<string, string> = new Map();

/** The last query string parsed: many routes may look at the query of one request. */
let lastSearch = "";
let lastValues = NONE;

/**
 * The parameters of a query string (`` or beginning with `?`), form-urlencoded; of duplicate names the last value counts
 * (reference 2.2).
 */
export function queryValues(search: string): ReadonlyMap<string, string> {
  if (search !== lastSearch) {
    lastValues = new Map(new URLSearchParams(search));
    lastSearch = search;
  }
  return lastValues;
}

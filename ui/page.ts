/** What a page of the view is. */
import type { ComponentType } from "preact";
import type { Place } from "./place.ts";

/** An entry in the list of pages. */
export interface Page {
  /** Of the place; one that ends in `/` stands for all paths below it. */
  readonly path: string;
  /** In the navigation; absent: it has no entry. */
  readonly name?: string;
  /** The path of the page whose entry stands for this one too. */
  readonly within?: string;
  /** It divides the window itself and scrolls its parts. */
  readonly full?: true;
  /** Its keys, for the help. */
  readonly keys?: Keys;
  readonly show: ComponentType<PageProps>;
}

/** Keys, such as `j, k`, and what they do. */
export type Keys = readonly (readonly [keys: string, does: string])[];

/** What a page gets. */
export interface PageProps {
  readonly place: Place;
  /** What follows the path of a page that ends in `/`, decoded; otherwise empty. */
  readonly rest: string;
}

import { render } from "preact";
import { Frame } from "./frame.tsx";
import { followAddress } from "./place.ts";
import { showHiddenCharacters } from "./visible-text.ts";

showHiddenCharacters();
followAddress();
const root = document.querySelector("#app");
if (root !== null) {
  // Preact leaves what it has not made.
  root.replaceChildren();
  render(<Frame />, root);
}

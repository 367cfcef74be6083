import { render } from "preact";
import { Frame } from "./frame.tsx";
import { followAddress } from "./place.ts";
import { showTextsSafely } from "./visible-text.ts";

showTextsSafely();
followAddress();
const root = document.querySelector("#app");
if (root !== null) {
  // Preact leaves what it has not made.
  root.replaceChildren();
  render(<Frame />, root);
}

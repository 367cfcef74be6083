import type { Group } from "../../runner/define-command.ts";
import { controllerLog } from "./log.ts";
import { controllerProfileCpu, controllerProfileHeap } from "./profile.ts";
import { controllerSnapshot } from "./snapshot.ts";

const profile: Group = {
  name: "profile",
  summary: "Record a CPU (default) or heap profile of the controller",
  commands: [controllerProfileCpu, controllerProfileHeap],
  fallback: "cpu",
};

export const controllerGroup: Group = {
  name: "controller",
  summary: "Inspect the controller in a cluster",
  commands: [controllerLog, profile, controllerSnapshot],
};

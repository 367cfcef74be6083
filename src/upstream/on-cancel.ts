/** Registers what ends a call early: `PolicyContext.onOver`. */
export type OnCancel = (callback: () => void) => void;

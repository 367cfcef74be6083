/** Registers what ends a call early: `PolicyContext.onClose`. */
export type OnCancel = (callback: () => void) => void;

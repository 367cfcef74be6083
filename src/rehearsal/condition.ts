/** Before the text of a condition, in the name of the choice whether it is met. */
export const CONDITION = "condition ";

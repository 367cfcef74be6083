/** A ClientHello that names `a.example`. */
export const CLIENT_HELLO = Buffer.from(
  `16030100410100003d0303${"00".repeat(32)}0000021301010000120000000e000c000009612e6578616d706c65`,
  "hex",
);

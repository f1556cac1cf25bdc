/** The whole of THIRD_PARTY_NOTICES.md. */
export function notices(): string;

/** A shrunk ISR alone raises no leader epoch (KAFKA-15021). */
export const METADATA_VERSION_SHRINK_KEEPS_EPOCH = 13
/** Controllers know in which directory each replica lies (KIP-858). */
export const METADATA_VERSION_DIRECTORIES = 17
/** Eligible leader replicas may be turned on (KIP-966). */
export const METADATA_VERSION_ELR = 23
/** Directories may be cordoned (KIP-1066). */
export const METADATA_VERSION_CORDONED = 30

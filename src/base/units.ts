/** Milliseconds: a point on a clock (since 1970 for wall time) or a span. */
export type Millis = number
/** A record's position in its partition; dense from 0, always a safe integer. */
export type Offset = number
/** Counts the leaders that a partition or a quorum has had. -1 is unknown. */
export type Epoch = number
/** A node of the cluster. -1 is none. */
export type NodeId = number
/** A producer's id as the cluster gave it out. -1 is none. */
export type ProducerId = number

export const KiB = 1024
export const MiB = 1024 * KiB
export const GiB = 1024 * MiB

export const INT32_MAX = 2_147_483_647

import type { Uuid } from '#base/uuid.ts'

/**
 * The wire format as tables: which fields a message has, in which order, in which versions, and how they are typed.
 * Types of messages are inferred from a table, codecs are compiled from it (codec.ts). The source of every table is
 * Kafka's message definition of the same name, release 4.3.
 *
 * Versions are written as in Kafka: `'3'` one version, `'0-7'` a range, `'4+'` open to the top, `'none'`.
 */

export type PrimitiveType = keyof PrimitiveValues
export type FieldType = PrimitiveType | 'struct' | 'array'

/** What a decoded value of each primitive type is. */
interface PrimitiveValues {
  bool: boolean
  int8: number
  int16: number
  uint16: number
  int32: number
  uint32: number
  /** Exact as a number; what is not is refused, or comes as a bigint where the caller asked for that (codec.ts). */
  int64: number
  float64: number
  string: string
  uuid: Uuid
  /** A view of the decoded buffer. */
  bytes: Buffer
  /** Record batches, a view of the decoded buffer. */
  records: Buffer
}

/** What the encoder takes for each primitive type. */
interface PrimitiveInputs extends Omit<PrimitiveValues, 'bytes' | 'records'> {
  bytes: Uint8Array
  records: RecordsInput
}

/** Stands for `size` bytes of records that the sender adds by itself, such as a range of a file. See `encodeParts`. */
export interface RecordsHole {
  readonly size: number
}

export type RecordsInput = Uint8Array | RecordsHole | readonly (Uint8Array | RecordsHole)[]

/** One tagged field that the table does not know. It is kept and written back. */
export interface UnknownTag {
  tag: number
  data: Buffer
}

export interface FieldOptions<Default = never> {
  /** Versions in which the value may be null. */
  readonly nullable?: string
  /** The value where none is given, and in versions that lack the field. Without it 0, false, '', empty or zero. */
  readonly default?: Default
  /** Whether a value that a version cannot carry is left out there; otherwise that is an error. */
  readonly ignorable?: boolean
  /** The number under which the field is sent in the tagged section, in versions `tagged`. */
  readonly tag?: number
  /** Defaults to the field's versions. */
  readonly tagged?: string
  /** Versions with the compact form, where they differ from the message's. */
  readonly flexible?: string
}

/** A field of a table. `Value` and `Input` exist for the type checker only. */
export interface Field<Value = unknown, Input = unknown> extends FieldOptions<unknown> {
  readonly type: FieldType
  readonly versions: string
  /** The fields of a struct, or of the structs in an array. */
  readonly fields?: Fields
  /** The type of an array's elements, if they are no structs. */
  readonly element?: PrimitiveType
  readonly value?: Value
  readonly input?: Input
}

export interface Fields {
  readonly [name: string]: Field
}

type Tags = { unknownTags?: UnknownTag[] }
type ValueOf<F> = F extends Field<infer Value, unknown> ? Value : never
type FieldInputOf<F> = F extends Field<unknown, infer Input> ? Input : never

/** A decoded struct: every field is there, defaults where the version has none. */
export type StructOf<F extends Fields> = { -readonly [Name in keyof F]: ValueOf<F[Name]> } & Tags
/** A struct to encode: fields left out take their default. */
export type StructInputOf<F extends Fields> = {
  readonly [Name in keyof F]?: FieldInputOf<F[Name]> | undefined
} & Readonly<Tags>

export type SchemaKind =
  | 'request'
  | 'response'
  | 'header'
  | 'metadata'
  | 'coordinator-key'
  | 'coordinator-value'
  | 'data'
export type Listener = 'broker' | 'controller'

export interface SchemaOptions {
  readonly name: string
  /** The API's key, or the record's type. */
  readonly apiKey?: number
  /** Versions that exist, such as `'3-13'`. */
  readonly versions: string
  /** Versions with compact strings and arrays and with tagged sections; none unless given. */
  readonly flexible?: string
  /** Where a request is taken. */
  readonly listeners?: readonly Listener[]
  /** The highest version is not yet final and is not advertised. */
  readonly latestVersionUnstable?: boolean
}

export interface Schema<F extends Fields = Fields> extends SchemaOptions {
  readonly kind: SchemaKind
  readonly fields: F
}

/** A whole decoded message. `export type X = MessageOf<typeof X>` stands under each table. */
export type MessageOf<S extends Schema> = StructOf<S['fields']>
/** A message to encode: names and types are checked all the way down, fields left out take their default. */
export type InputOf<S extends Schema> = StructInputOf<S['fields']>

function schema(kind: SchemaKind) {
  return <const F extends Fields>(options: SchemaOptions, fields: F): Schema<F> => ({ kind, ...options, fields })
}

export const request = schema('request')
export const response = schema('response')
export const header = schema('header')
/** A record of the metadata log, or of another log that frames its records in the same way. */
export const metadataRecord = schema('metadata')
/** The key of a coordinator's record: framed by its type. */
export const coordinatorKey = schema('coordinator-key')
/** The value of a coordinator's record: framed by its version. */
export const coordinatorValue = schema('coordinator-value')
/** Anything else that has versions: control records, files, what clients put into opaque fields. */
export const data = schema('data')

/** Null belongs to the type where the field is nullable in any version. */
type Nullable<T, O> = O extends { readonly nullable: string } ? T | null : T

function primitive<const T extends PrimitiveType>(type: T) {
  return <const O extends FieldOptions<PrimitiveValues[T] | null>>(
    versions: string,
    options?: O,
  ): Field<Nullable<PrimitiveValues[T], O>, Nullable<PrimitiveInputs[T], O>> => ({ type, versions, ...options })
}

export const bool = primitive('bool')
export const int8 = primitive('int8')
export const int16 = primitive('int16')
export const uint16 = primitive('uint16')
export const int32 = primitive('int32')
export const uint32 = primitive('uint32')
export const int64 = primitive('int64')
export const float64 = primitive('float64')
export const string = primitive('string')
export const uuid = primitive('uuid')
export const bytes = primitive('bytes')
export const records = primitive('records')

type ElementValue<E> = E extends PrimitiveType ? PrimitiveValues[E] : E extends Fields ? StructOf<E> : never
type ElementInput<E> = E extends PrimitiveType ? PrimitiveInputs[E] : E extends Fields ? StructInputOf<E> : never

/** An array of structs (given their fields) or of primitives (given their type's name). */
export function array<const E extends PrimitiveType | Fields, const O extends FieldOptions<null>>(
  versions: string,
  element: E,
  options?: O,
): Field<Nullable<ElementValue<E>[], O>, Nullable<readonly ElementInput<E>[], O>> {
  return typeof element === 'string'
    ? { type: 'array', versions, element, ...options }
    : { type: 'array', versions, fields: element, ...options }
}

export function struct<const F extends Fields, const O extends FieldOptions<null>>(
  versions: string,
  fields: F,
  options?: O,
): Field<Nullable<StructOf<F>, O>, Nullable<StructInputOf<F>, O>> {
  return { type: 'struct', versions, fields, ...options }
}

/**
 * Stands for the highest 64-bit integer, which no number holds. The default of one field (Fetch's high watermark);
 * compares as larger than every offset.
 */
export const INT64_MAX: number = 2 ** 63

/** First and last version, both included. */
export interface VersionRange {
  readonly first: number
  readonly last: number
}

const NO_VERSIONS: VersionRange = { first: 0, last: -1 }
const parsedRanges = new Map<string, VersionRange>()

export function parseVersions(text: string | undefined): VersionRange {
  if (text === undefined) return NO_VERSIONS
  let range = parsedRanges.get(text)
  if (range === undefined) {
    const match = /^(\d+)(?:(\+)|-(\d+))?$/.exec(text)
    const first = Number(match?.[1])
    range = match === null ? NO_VERSIONS : { first, last: match[2] ? 0x7fff : Number(match[3] ?? first) }
    parsedRanges.set(text, range)
  }
  return range
}

export function includesVersion(text: string | undefined, version: number): boolean {
  const range = parseVersions(text)
  return version >= range.first && version <= range.last
}

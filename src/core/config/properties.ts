/** One entry of a .properties text; `line` is where it begins, from 1. */
export interface Property {
  readonly key: string
  readonly value: string
  readonly line: number
}
export interface Properties {
  readonly properties: readonly Property[]
  readonly problems: readonly { readonly line: number; readonly message: string }[]
}

const TEXT_LENGTH_MAX = 4 * 1024 * 1024
const BLANK = /^[ \t\f]*/

/**
 * Reads Java's .properties format (java.util.Properties.load): `#` and `!` comments, `=`, `:` or blank between key and
 * value, a line that ends in an odd number of backslashes goes on in the next, escapes \t \n \r \f \uXXXX, and any other
 * escaped character stands for itself. Keys may repeat; the last one counts, which is up to the reader of the list.
 */
export function parseProperties(text: string): Properties {
  if (text.length > TEXT_LENGTH_MAX)
    return { properties: [], problems: [{ line: 1, message: `the text is longer than ${TEXT_LENGTH_MAX} characters` }] }
  const properties: Property[] = []
  const problems: { line: number; message: string }[] = []
  const lines = text.replace(/^\uFEFF/, '').split(/\r\n|\n|\r/)
  for (let index = 0; index < lines.length; index++) {
    const line = index + 1
    let logical = (lines[index] ?? '').replace(BLANK, '')
    if (logical === '' || logical.startsWith('#') || logical.startsWith('!')) continue
    while (endsInContinuation(logical)) {
      logical = logical.slice(0, -1)
      if (index + 1 >= lines.length) break
      index++
      logical += (lines[index] ?? '').replace(BLANK, '')
    }
    const { key, value } = split(logical)
    try {
      if (key !== '' || value !== '') properties.push({ key: unescaped(key), value: unescaped(value), line })
    } catch (error) {
      if (!(error instanceof MalformedEscape)) throw error
      problems.push({ line, message: `"${error.message}" is not an escape of the form \\uXXXX` })
    }
  }
  return { properties, problems }
}

class MalformedEscape extends Error {}

function endsInContinuation(line: string): boolean {
  let slashes = 0
  while (line[line.length - 1 - slashes] === '\\') slashes++
  return slashes % 2 === 1
}

/** Key and value, still escaped: the key ends at the first unescaped `=`, `:` or blank. */
function split(line: string): { key: string; value: string } {
  let end = 0
  while (end < line.length && !'=: \t\f'.includes(line[end] ?? '')) end += line[end] === '\\' ? 2 : 1
  const rest = line.slice(end).replace(BLANK, '')
  const value = rest.startsWith('=') || rest.startsWith(':') ? rest.slice(1).replace(BLANK, '') : rest
  return { key: line.slice(0, end), value }
}

const CONTROL: Record<string, string> = { t: '\t', n: '\n', r: '\r', f: '\f' }

function unescaped(text: string): string {
  return text.replace(
    /\\(?:u([0-9a-fA-F]{0,4})|([\s\S])|$)/g,
    (all: string, hex: string | undefined, other: string | undefined) => {
      if (hex === undefined) return other === undefined ? '' : (CONTROL[other] ?? other)
      if (hex.length < 4) throw new MalformedEscape(all)
      return String.fromCharCode(Number.parseInt(hex, 16))
    },
  )
}

import * as errors from '#protocol/errors.ts'

const BY_CODE = new Map(Object.entries(errors.ErrorCode).map(([name, code]) => [code as number, name]))

export function errorName(code: number): string {
  return BY_CODE.get(code) ?? `error ${code}`
}

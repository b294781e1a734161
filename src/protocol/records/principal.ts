import { bool, data, type MessageOf, string } from '../schema.ts'

export const DefaultPrincipalData = data(
  { name: 'DefaultPrincipalData', versions: '0', flexible: '0+' },
  { type: string('0+'), name: string('0+'), tokenAuthenticated: bool('0+') },
)
export type DefaultPrincipalData = MessageOf<typeof DefaultPrincipalData>

import { bracketed, hostPort } from '#base/host-port.ts'
import { BROKER_CONFIGS, brokerDefinition } from './broker.ts'
import { brokerRules, unsupportedValue } from './broker-alter.ts'
import { BrokerConfigs } from './broker-configs.ts'
import { checkValue, invalidValue, unknownKey } from './definition.ts'
import { environmentSettings, overrideSetting, type Setting } from './environment.ts'
import { ipOverrides } from './ip-overrides.ts'
import {
  type Endpoint,
  isLoopback,
  type Listener,
  meansAnyAddress,
  parseEndpoint,
  parseProtocolMap,
} from './listeners.ts'
import { parseProperties } from './properties.ts'
import { bootstrapEntries, type QuorumConfig, quorumConfig, voterEntries } from './quorum-config.ts'
import { REMOVED_CONFIGS } from './removed.ts'
import { TOPIC_CONFIGS } from './topic.ts'

/** Where a node's configuration comes from. Later ones win: what flags imply, file, environment, `--override`, flags of their own. */
export interface ConfigSources {
  /** What flags bring along unless something else is said anywhere, with the flag as the source. */
  readonly implied?: readonly Setting[]
  readonly file?: { readonly path: string; readonly text: string }
  readonly environment?: Readonly<Record<string, string | undefined>>
  /** `key=value` each. */
  readonly overrides?: readonly string[]
  /** What other flags stand for, with the flag as the source: `--data x` is log.dirs. */
  readonly flags?: readonly Setting[]
  /** `--port`: of the first listener, in the place of `listeners`. */
  readonly port?: number
  /** `--host`: how other machines reach this node. */
  readonly host?: string
}

/** One thing that is wrong, with everything that is needed to right it. `value` is left out where it may be a secret. */
export interface ConfigError {
  readonly key: string
  readonly value?: string
  readonly message: string
  /** "server.properties:12", "KAFKA_NODE_ID", "--override". */
  readonly source: string
  readonly nearest?: string
}

/** What a node is, fixed while it runs. What may change at run time is asked from `broker`, by the functions of settings.ts. */
export interface ServerConfig {
  readonly nodeId: number
  readonly roles: { readonly broker: boolean; readonly controller: boolean }
  readonly rack: string | undefined
  readonly listeners: readonly Listener[]
  /** Name of the listener by which brokers reach this one. */
  readonly interBrokerListener: string | undefined
  /** Name of the listener by which this node reaches controllers. */
  readonly controllerListener: string
  /**
   * What others are told in the place of the host of a listener that is on every address and has none of its own;
   * undefined where nobody said.
   */
  readonly reachableAs: string | undefined
  readonly quorum: QuorumConfig
  readonly logDirs: readonly string[]
  readonly metadataLogDir: string
  readonly broker: BrokerConfigs
  /** For the log at start: settings without effect so far, variables that were left alone. */
  readonly notices: readonly string[]
}

export type ServerConfigResult = { readonly config: ServerConfig } | { readonly errors: readonly ConfigError[] }

/** Prefixes of keys that belong to what a key of ours names; Kafka passes them on. */
const FREE_PREFIXES = ['rsm.config.', 'rlmm.config.']
const BY_DEFAULT = 'default'

/** The configuration of this node, or everything that is wrong with it. */
export function serverConfig(sources: ConfigSources): ServerConfigResult {
  const errors: ConfigError[] = []
  const { settings, notices } = gathered(sources, errors)
  // What is wrong by itself counts as not given, so that what else is wrong is found in the same run.
  for (const setting of [...settings.values()]) if (!isSound(setting, errors, notices)) settings.delete(setting.key)
  const node = new NodeReader(settings, errors, sources)
  const config = node.read()
  return errors.length > 0 ? { errors } : { config: { ...config, notices } }
}

function gathered(
  sources: ConfigSources,
  errors: ConfigError[],
): { settings: Map<string, Setting>; notices: string[] } {
  const settings = new Map<string, Setting>()
  for (const setting of sources.implied ?? []) settings.set(setting.key, setting)
  const { file } = sources
  if (file !== undefined) {
    const { properties, problems } = parseProperties(file.text)
    for (const { line, message } of problems)
      errors.push({ key: '', message: `Line ${line} cannot be read: ${message}.`, source: `${file.path}:${line}` })
    for (const { key, value, line } of properties) settings.set(key, { key, value, source: `${file.path}:${line}` })
  }
  const environment = environmentSettings(sources.environment ?? {})
  for (const setting of environment.settings) settings.set(setting.key, setting)
  for (const text of sources.overrides ?? []) {
    const setting = overrideSetting(text)
    if ('problem' in setting) errors.push({ key: '', value: text, message: setting.problem, source: '--override' })
    else settings.set(setting.key, setting)
  }
  for (const setting of sources.flags ?? []) settings.set(setting.key, setting)
  return { settings, notices: [...environment.notices] }
}

function isSound({ key, value, source }: Setting, errors: ConfigError[], notices: string[]): boolean {
  const definition = brokerDefinition(key)
  if (definition === undefined) {
    const free = FREE_PREFIXES.some(prefix => key.startsWith(prefix))
    if (free) notices.push(`${key} (${source}) has no effect yet.`)
    else errors.push(unknownSetting({ key, value, source }))
    return free
  }
  const named = { ...definition, name: key }
  const checked = checkValue(named, value)
  const message =
    'problem' in checked ? invalidValue(named, value, checked.problem).message : unsupportedValue(named, checked.text)
  if (message !== undefined) {
    errors.push({ key, ...(definition.type === 'PASSWORD' ? {} : { value }), message, source })
    return false
  }
  if (!definition.implemented && 'text' in checked && checked.text !== definition.default)
    notices.push(`${key} (${source}) is taken but has no effect yet.`)
  return true
}

function unknownSetting({ key, value, source }: Setting): ConfigError {
  const instead = REMOVED_CONFIGS.get(key)
  // The value of an unknown key may be a secret of something else.
  if (instead !== undefined) return { key, message: `${key} was removed from Kafka. ${instead}`, source }
  if (key.startsWith('zookeeper.'))
    return { key, message: `${key} was removed from Kafka with ZooKeeper. Delete the line.`, source }
  const synonym = TOPIC_CONFIGS.get(key)?.synonyms?.[0]
  if (synonym !== undefined)
    return {
      key,
      value,
      message: `${key} is a configuration of topics. For all topics of the broker it is called ${synonym}.`,
      source,
      nearest: synonym,
    }
  const { message, nearest } = unknownKey('broker', key, BROKER_CONFIGS)
  return nearest === undefined ? { key, message, source } : { key, message, source, nearest }
}

/** Reads what concerns several keys together: who the node is, where it listens, what it stores where. */
class NodeReader {
  readonly #settings: ReadonlyMap<string, Setting>
  readonly #errors: ConfigError[]
  readonly #fixed: Map<string, string>
  readonly #port: number | undefined
  readonly #host: string | undefined

  constructor(settings: Map<string, Setting>, errors: ConfigError[], { port, host }: ConfigSources) {
    this.#settings = settings
    this.#errors = errors
    this.#port = port
    this.#host = host
    if (port !== undefined) settings.set('listeners', { key: 'listeners', value: '', source: '--port' })
    this.#fixed = new Map([...settings.values()].map(({ key, value }) => [key, value]))
    if (port !== undefined) this.#fixed.delete('listeners')
  }

  read(): Omit<ServerConfig, 'notices'> {
    const nodeId = this.#nodeId()
    const roles = this.#roles()
    const controllerNames = this.#controllerNames()
    const listeners = this.#listeners(nodeId, roles, controllerNames)
    const quorum = this.#quorum(nodeId, roles, listeners)
    const logDirs = this.#logDirs()
    const broker = new BrokerConfigs({ nodeId, fixed: this.#fixed })
    for (const { name, message } of brokerRules(broker, name => this.#settings.has(name))) this.#wrong(name, message)
    this.#checkCounts(broker)
    return {
      nodeId,
      roles,
      rack: broker.string('broker.rack') ?? undefined,
      listeners,
      interBrokerListener: this.#interBroker(listeners, roles),
      controllerListener: controllerNames[0] ?? 'CONTROLLER',
      reachableAs: this.#host ?? quorum.voters.find(({ id }) => id === nodeId)?.host,
      quorum,
      logDirs,
      metadataLogDir: broker.string('metadata.log.dir') ?? logDirs[0] ?? './data',
      broker,
    }
  }

  #wrong(key: string, message: string): void {
    const setting = this.#settings.get(key)
    this.#errors.push({
      key,
      message,
      source: setting?.source ?? BY_DEFAULT,
      ...(setting === undefined ? {} : { value: setting.value }),
    })
  }

  /** The text of a key that was set, or what a node that is given nothing uses; that then counts as set, and is shown so. */
  #given(key: string, otherwise: string): string {
    const given = this.#fixed.get(key)?.trim()
    if (given !== undefined) return given
    this.#fixed.set(key, otherwise)
    return otherwise
  }

  #items(text: string): string[] {
    return text
      .split(',')
      .map(item => item.trim())
      .filter(item => item !== '')
  }

  #nodeId(): number {
    const older = this.#fixed.get('broker.id')?.trim()
    const text = this.#given('node.id', older ?? '1')
    this.#given('broker.id', text)
    if (older !== undefined && Number(older) !== Number(text))
      this.#wrong('broker.id', `broker.id (${older}) and node.id (${text}) must be the same. Delete broker.id.`)
    else if (Number(text) < 0) this.#wrong('broker.id', 'broker.id must be at least 0.')
    return Number(text)
  }

  #roles(): ServerConfig['roles'] {
    const roles = this.#items(this.#given('process.roles', 'broker,controller'))
    if (new Set(roles).size !== roles.length) this.#wrong('process.roles', 'process.roles names a role twice.')
    return { broker: roles.includes('broker'), controller: roles.includes('controller') }
  }

  #controllerNames(): string[] {
    return this.#items(this.#given('controller.listener.names', 'CONTROLLER')).map(name => name.toUpperCase())
  }

  #listeners(nodeId: number, roles: ServerConfig['roles'], controllerNames: readonly string[]): Listener[] {
    const endpoints = this.#endpoints(nodeId, roles, controllerNames)
    const protocols = this.#protocols(endpoints, controllerNames)
    const advertised = this.#advertised(endpoints)
    if (roles.controller && !endpoints.some(({ name }) => controllerNames.includes(name)))
      this.#wrong(
        'controller.listener.names',
        `listeners must hold one of the controller's (${controllerNames.join(', ')}), as process.roles includes controller.`,
      )
    if (roles.broker && !endpoints.some(({ name }) => !controllerNames.includes(name)))
      this.#wrong('listeners', 'listeners must hold one for clients, as process.roles includes broker.')
    const superfluous = endpoints.find(({ name }) =>
      controllerNames.includes(name) ? !roles.controller : !roles.broker,
    )
    if (superfluous !== undefined)
      this.#wrong(
        'listeners',
        roles.controller
          ? `listeners names ${superfluous.name}, which would be for clients, and process.roles is controller. Remove it, or add the role broker.`
          : `listeners names ${superfluous.name}, which is for controllers, and process.roles is broker. Remove it, or add the role controller.`,
      )
    return endpoints.map(({ name, host, port }) => {
      const protocol = protocols.get(name)
      if (protocol === undefined)
        this.#wrong(
          'listener.security.protocol.map',
          `listener.security.protocol.map must say what the listener ${name} speaks, for example ${name}:PLAINTEXT.`,
        )
      else if (protocol !== 'PLAINTEXT')
        this.#wrong(
          this.#settings.has('listener.security.protocol.map') ? 'listener.security.protocol.map' : 'listeners',
          ['SSL', 'SASL_PLAINTEXT', 'SASL_SSL'].includes(protocol)
            ? `The listener ${name} would speak ${protocol}, which is not supported yet; only PLAINTEXT is.`
            : `The listener ${name} cannot speak ${protocol}: there are PLAINTEXT, SSL, SASL_PLAINTEXT and SASL_SSL.`,
        )
      return {
        name,
        host,
        port,
        protocol: 'PLAINTEXT' as const,
        forControllers: controllerNames.includes(name),
        advertised: advertised.get(name),
      }
    })
  }

  #endpoints(nodeId: number, roles: ServerConfig['roles'], controllerNames: readonly string[]): Endpoint[] {
    const given = this.#fixed.get('listeners')?.trim()
    const bound = this.#host !== undefined && isLoopback(this.#host) ? bracketed(this.#host) : ''
    const own = roles.broker ? [`PLAINTEXT://${bound}:${this.#port ?? 9092}`] : []
    const texts = given === undefined ? own : this.#items(given)
    const endpoints = this.#parsed('listeners', texts)
    const [name] = controllerNames
    // Nobody named a listener for the controller: a node that needs one gets it.
    const isOwn = this.#port !== undefined || !this.#settings.has('controller.listener.names')
    if (
      roles.controller &&
      isOwn &&
      name !== undefined &&
      !endpoints.some(each => controllerNames.includes(each.name))
    ) {
      const added = this.#controllerEndpoint(name, nodeId, endpoints)
      endpoints.push(added)
      texts.push(`${name}://${hostPort(added)}`)
    }
    this.#fixed.set('listeners', texts.join(','))
    for (const [index, endpoint] of endpoints.entries())
      if (endpoints.slice(0, index).some(other => clash(endpoint, other)))
        this.#wrong('listeners', `listeners uses port ${endpoint.port} twice.`)
    return endpoints
  }

  /**
   * One port above the clients' on the address of theirs, so that it is the same after every start. A node that nobody
   * said to be part of a cluster of several machines is private to its own.
   */
  #controllerEndpoint(name: string, nodeId: number, endpoints: readonly Endpoint[]): Endpoint {
    const self = voterEntries(this.#fixed).find(({ id }) => id === nodeId)
    const forClients = endpoints[0]
    let port = self?.port ?? (forClients === undefined ? (this.#port ?? 9093) : forClients.port + 1)
    if (forClients?.port === 0 && self === undefined) port = 0
    while (port !== 0 && endpoints.some(each => each.port === port)) port++
    if (port > 65_535) port = 0
    if (forClients !== undefined && !meansAnyAddress(forClients.host)) return { name, host: forClients.host, port }
    const others = [...voterEntries(this.#fixed), ...bootstrapEntries(this.#fixed)]
    const isFar = others.some(({ host }) => !isLoopback(host)) || (this.#host !== undefined && !isLoopback(this.#host))
    return { name, host: isFar ? '' : '127.0.0.1', port }
  }

  #parsed(key: string, texts: readonly string[]): Endpoint[] {
    const endpoints: Endpoint[] = []
    for (const text of texts) {
      const endpoint = parseEndpoint(text)
      if (endpoint === undefined)
        this.#wrong(
          key,
          `${key} takes NAME://host:port with a port from 0 to 65535, and "${text}" is not of that form.`,
        )
      else if (endpoints.some(({ name }) => name === endpoint.name))
        this.#wrong(key, `${key} names the listener ${endpoint.name} twice.`)
      else endpoints.push(endpoint)
    }
    return endpoints
  }

  #protocols(endpoints: readonly Endpoint[], controllerNames: readonly string[]): ReadonlyMap<string, string> {
    const set = this.#fixed.get('listener.security.protocol.map')
    const protocols = parseProtocolMap(set ?? BROKER_CONFIGS.get('listener.security.protocol.map')?.default ?? '')
    if (protocols === undefined) {
      this.#wrong(
        'listener.security.protocol.map',
        'listener.security.protocol.map takes NAME:PROTOCOL pairs, each name once.',
      )
      return new Map(endpoints.map(({ name }) => [name, 'PLAINTEXT']))
    }
    // As in Kafka: as long as nobody says otherwise, controllers speak in the clear.
    return set === undefined
      ? new Map([...controllerNames.map(name => [name, 'PLAINTEXT'] as const), ...protocols])
      : protocols
  }

  #advertised(endpoints: readonly Endpoint[]): ReadonlyMap<string, { host: string; port: number }> {
    const text = this.#fixed.get('advertised.listeners')
    const advertised = this.#parsed('advertised.listeners', text === undefined ? [] : this.#items(text))
    for (const { name, host, port } of advertised) {
      if (!endpoints.some(endpoint => endpoint.name === name))
        this.#wrong('advertised.listeners', `advertised.listeners names ${name}, which listeners does not.`)
      if (meansAnyAddress(host))
        this.#wrong(
          'advertised.listeners',
          `advertised.listeners must give ${name} an address that clients can dial, not ${host === '' ? 'an empty one' : host}.`,
        )
      if (port === 0) this.#wrong('advertised.listeners', `advertised.listeners must give ${name} a port.`)
    }
    return new Map(advertised.map(({ name, host, port }) => [name, { host, port }]))
  }

  #interBroker(listeners: readonly Listener[], roles: ServerConfig['roles']): string | undefined {
    const forClients = listeners.filter(({ forControllers }) => !forControllers)
    const name = this.#fixed.get('inter.broker.listener.name')?.trim().toUpperCase()
    if (name === undefined || !roles.broker) return forClients[0]?.name
    if (!forClients.some(listener => listener.name === name))
      this.#wrong(
        'inter.broker.listener.name',
        `inter.broker.listener.name (${name}) must be one of listeners that is not for controllers only.`,
      )
    if (this.#settings.has('security.inter.broker.protocol'))
      this.#wrong(
        'security.inter.broker.protocol',
        'security.inter.broker.protocol and inter.broker.listener.name cannot both be set. Delete one.',
      )
    return name
  }

  #quorum(nodeId: number, roles: ServerConfig['roles'], listeners: readonly Listener[]): QuorumConfig {
    // The flag stands for it as far as the node's roles, which may be said elsewhere, have use for it.
    const autoJoin = 'controller.quorum.auto.join.enable'
    if (!roles.controller && this.#settings.get(autoJoin)?.source === '--join') this.#fixed.delete(autoJoin)
    const { quorum, problems } = quorumConfig({
      nodeId: this.#settings.has('node.id') || this.#settings.has('broker.id') ? nodeId : undefined,
      roles,
      listeners,
      host: this.#host,
      values: this.#fixed,
    })
    for (const { key, message } of problems) this.#wrong(key, message)
    return quorum
  }

  #logDirs(): string[] {
    const key = this.#fixed.has('log.dirs') || !this.#fixed.has('log.dir') ? 'log.dirs' : 'log.dir'
    const dirs = this.#items(this.#given(key, './data'))
    if (dirs.length === 0) this.#wrong(key, `${key} must name at least one folder.`)
    const twice = dirs.find((dir, index) => dirs.indexOf(dir) !== index)
    if (twice !== undefined) this.#wrong(key, `${key} names the folder ${twice} twice.`)
    return dirs
  }

  #checkCounts(broker: BrokerConfigs): void {
    const overrides = broker.string('max.connections.per.ip.overrides') ?? ''
    if (ipOverrides(overrides).size !== this.#items(overrides).length)
      this.#wrong(
        'max.connections.per.ip.overrides',
        'max.connections.per.ip.overrides takes host:count pairs, each host once.',
      )
    if (broker.number('max.connections.per.ip') === 0 && overrides === '')
      this.#wrong(
        'max.connections.per.ip',
        'max.connections.per.ip can be 0 only with max.connections.per.ip.overrides, as nobody could connect.',
      )
    const cordoned = broker.list('cordoned.log.dirs').filter(dir => dir !== '*')
    const dirs = this.#items(this.#fixed.get('log.dirs') ?? this.#fixed.get('log.dir') ?? '')
    for (const dir of cordoned.filter(item => !dirs.includes(item)))
      this.#wrong('cordoned.log.dirs', `cordoned.log.dirs names ${dir}, which log.dirs does not.`)
    if (broker.number('replica.fetch.wait.max.ms') < 0)
      this.#wrong('replica.fetch.wait.max.ms', 'replica.fetch.wait.max.ms must be at least 0.')
  }
}

/** Whether two listeners would want the same port of the same address. */
function clash(a: Endpoint, b: Endpoint): boolean {
  if (a.port !== b.port || a.port === 0) return false
  return a.host === b.host || meansAnyAddress(a.host) || meansAnyAddress(b.host)
}

/** All that is wrong, a line each, for people. */
export function formatConfigErrors(errors: readonly ConfigError[]): string {
  return errors.map(({ source, message }) => (source === BY_DEFAULT ? message : `${source}: ${message}`)).join('\n')
}

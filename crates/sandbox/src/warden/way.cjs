// The way to the network door for Node.js, whose own `fetch`, `http` and `https` know no variables of a proxy before 22.21 and
// 24.5. NODE_OPTIONS has it loaded before a program; from those versions on it does nothing.
'use strict'

const [major, minor] = process.versions.node.split('.').map(Number)
const readsVariables = major > 24 || (major === 24 && minor >= 5) || (major === 22 && minor >= 21)

if (process.env.HTTPS_PROXY && !readsVariables) {
  const { Agent, request } = require('http')
  const net = require('net')
  const door = new URL(process.env.HTTPS_PROXY)
  const pass = Buffer.from(`${decodeURIComponent(door.username)}:${decodeURIComponent(door.password)}`).toString('base64')
  const own = (process.env.NO_PROXY || '').split(',').map((host) => host.trim().toLowerCase())
  const isOwn = (host) => own.includes(host.toLowerCase())

  const toTheDoor = Object.assign(new Agent(), { createConnection: (options) => net.connect(options) })

  // Brings a connection to a server, through the door, or an error.
  const through = (host, port, brought) => {
    const to = `${net.isIPv6(host) ? `[${host}]` : host}:${port}`
    request({
      method: 'CONNECT', host: door.hostname, port: door.port, path: to, agent: toTheDoor,
      headers: { host: to, 'proxy-authorization': `Basic ${pass}` }
    }).on('connect', (answer, socket) => {
      if (answer.statusCode === 200) return brought(null, socket)
      socket.destroy()
      brought(Object.assign(new Error(`the network door answered ${answer.statusCode} for ${to}`), { code: 'ECONNREFUSED' }))
    }).on('error', brought).end()
  }

  // The same, with TLS within it.
  const throughTls = (options, host, port, brought) => through(host, port, (error, socket) => {
    if (error) return brought(error)
    const { connect } = require('tls')
    const servername = options.servername || (net.isIP(host) ? '' : host)
    brought(null, connect({ ALPNProtocols: ['http/1.1'], ...options, host, port, path: undefined, socket, servername }))
  })

  // `http` and `https`: where an agent makes a connection.
  const instead = (agent, usual, make) => {
    const direct = agent.prototype.createConnection
    agent.prototype.createConnection = function (...given) {
      const [options, brought] = given
      const host = options && typeof options === 'object' && !options.socketPath && (options.hostname || options.host || 'localhost')
      if (!host || typeof brought !== 'function' || isOwn(host)) return direct.apply(this, given)
      make(options, host, options.port || usual, brought)
    }
  }
  instead(Agent, 80, (_, host, port, brought) => through(host, port, brought))
  instead(require('https').Agent, 443, throughTls)

  // `fetch`: its dispatcher is there once it was first asked for, and a program may have put in one of its own.
  const dispatcher = Symbol.for('undici.globalDispatcher.1')
  const usualFetch = globalThis.fetch
  let isSet = !usualFetch
  const awaited = (socket, event, brought) => {
    socket.once('error', brought).once(event, () => brought(null, socket.off('error', brought)))
  }
  const connect = ({ hostname, protocol, port, servername }, brought) => {
    const host = hostname.replace(/^\[|\]$/g, '')
    const secured = (error, socket) => error ? brought(error) : awaited(socket, 'secureConnect', brought)
    if (protocol !== 'https:') {
      if (isOwn(host)) awaited(net.connect({ host, port: port || 80 }), 'connect', brought)
      else through(host, port || 80, brought)
    } else if (isOwn(host)) {
      secured(null, require('tls').connect({ host, port: port || 443, servername, ALPNProtocols: ['http/1.1'] }))
    } else {
      throughTls({ servername }, host, port || 443, secured)
    }
  }
  const lead = () => {
    isSet = true
    const chosen = globalThis[dispatcher]
    void globalThis.Headers
    const usual = globalThis[dispatcher]
    if (chosen || !usual) return
    globalThis[dispatcher] = new usual.constructor({ connect })
  }
  globalThis.fetch = function fetch (...given) {
    if (!isSet) lead()
    return usualFetch.apply(this, given)
  }
}

// Prometheus as Grafana's data source asks it: variables, steps, and the frames of answers.
import { createDataFrame, FieldType, rangeUtil } from '@grafana/data'

const escaped = (text) => text.replace(/[\\^$*+?.()|{}[\]]/g, '\\\\$&')

export class Prometheus {
  // range: from and to in milliseconds; interval: seconds between two scrapes.
  constructor(base, range, interval) {
    Object.assign(this, { base, range, interval, variables: {}, queries: [] })
  }

  async ask(path, parameters) {
    const answer = await fetch(`${this.base}/api/v1/${path}?${new URLSearchParams(parameters)}`)
    const { status, error, data } = await answer.json()
    if (status !== 'success') throw new Error(error)
    return data
  }

  // Fill in the variables in an order in which none needs a later one.
  async choose(variables, wanted) {
    const left = new Map(variables.map((one) => [one.name, one]))
    while (left.size) {
      const [name, one] = [...left].find(([, { query }]) =>
        ![...query.matchAll(/\$(\w+)/g)].some(([, other]) => left.has(other)))
      left.delete(name)
      if (one.type === 'datasource') this.variables[name] = 'Prometheus'
      else if (wanted[name]) this.variables[name] = [wanted[name]]
      else if (one.allValue) this.variables[name] = one.allValue
      else {
        const values = await this.values(one)
        this.variables[name] = one.includeAll ? values : values.slice(0, 1)
      }
    }
  }

  async values({ query: asked, regex }) {
    const text = this.fill(asked, 1)
    const [, series, label] = /^label_values\((.*),\s*(\w+)\)$/s.exec(text) ?? []
    const { from, to } = this.range
    if (label)
      return this.ask(`label/${label}/values`, { 'match[]': series, start: from / 1000, end: to / 1000 })
    const [, query] = /^query_result\((.*)\)$/s.exec(text)
    const { result } = await this.ask('query', { query, time: to / 1000 })
    const pattern = new RegExp(regex.slice(1, -1))
    return result
      .map(({ metric }) => Object.entries(metric).sort().map(([k, v]) => `${k}="${v}"`).join(','))
      .map((line) => pattern.exec(`{${line}} 1 1`)?.groups.value)
      .filter(Boolean)
  }

  step(width) {
    const least = rangeUtil.roundInterval((this.range.to - this.range.from) / width) / 1000
    return Math.max(this.interval, least)
  }

  fill(text, width) {
    const step = this.step(width)
    const seconds = {
      __rate_interval: Math.max(step + this.interval, 4 * this.interval),
      __interval: step,
      __range: (this.range.to - this.range.from) / 1000,
    }
    return text.replace(/\$\{?(\w+)(?::\w+)?\}?/g, (whole, name) => {
      if (name in seconds) return `${seconds[name]}s`
      const value = this.variables[name]
      if (value === undefined) return whole
      if (typeof value === 'string') return value
      return value.length === 1 ? escaped(value[0]) : `(${value.map(escaped).join('|')})`
    })
  }

  // The frames of a target. What it cost is kept in `queries`.
  async frames(target, width, alone) {
    const query = this.fill(target.expr, width)
    const kept = { query }
    this.queries.push(kept)
    const step = this.step(width)
    const [from, to] = [this.range.from, this.range.to].map((ms) => Math.floor(ms / 1000 / step) * step)
    const when = target.instant ? { time: this.range.to / 1000 } : { start: from, end: to, step }
    try {
      const { result, stats } = await this.ask(target.instant ? 'query' : 'query_range', { query, stats: 'all', ...when })
      Object.assign(kept, { series: result.length, samples: stats?.samples?.totalQueryableSamples ?? 0 })
      if (target.format === 'table') return [table(result, alone ? 'Value' : `Value #${target.refId}`)]
      return result.map(({ metric, value, values }) => {
        const points = new Map(values ?? [value])
        const times = value ? [value[0]] : Array.from({ length: (to - from) / step + 1 }, (_, i) => from + i * step)
        return series(target, metric, times, times.map((time) => number(points.get(time))))
      })
    } catch (error) {
      kept.error = String(error)
      throw error
    }
  }
}

const number = (text) => (text === undefined ? null : text === '+Inf' ? Infinity : parseFloat(text))

function series({ refId, legendFormat }, labels, times, values) {
  const name = legendFormat.replace(/\{\{(\w+)\}\}/g, (_, label) => labels[label] ?? '').trim()
  return createDataFrame({
    refId,
    fields: [
      { name: 'Time', type: FieldType.time, values: times.map((time) => time * 1000), config: {} },
      { name: 'Value', type: FieldType.number, labels, values, config: { displayNameFromDS: name } },
    ],
  })
}

function table(rows, value) {
  const labels = [...new Set(rows.flatMap(({ metric }) => Object.keys(metric)))].sort()
  return createDataFrame({
    fields: [
      { name: 'Time', type: FieldType.time, values: rows.map((row) => row.value[0] * 1000), config: {} },
      ...labels.map((name) => ({ name, type: FieldType.string, values: rows.map(({ metric }) => metric[name] ?? ''), config: {} })),
      { name: value, type: FieldType.number, values: rows.map((row) => number(row.value[1])), config: {} },
    ],
  })
}

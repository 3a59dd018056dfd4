// A board as a page: its variables, marks and panels at one time of a Prometheus.
import { ThemeContext } from '@grafana/data'
import { GlobalStyles } from '@grafana/ui'
import React from 'react'
import { createRoot } from 'react-dom/client'
import { Panel, parameters, seen, theme } from './panels'
import { Prometheus } from './prometheus'

const CELL = 30
const GAP = 8
const MARGIN = 16

async function read() {
  const board = await (await fetch(`/boards/${parameters.get('board')}.json`)).json()
  const to = Number(parameters.get('now')) * 1000
  const prometheus = new Prometheus('/prometheus', { from: to - 6 * 3600e3, to }, Number(parameters.get('interval')))
  const wanted = Object.fromEntries([...parameters].filter(([name]) => name.startsWith('var-')).map(([name, value]) => [name.slice(4), value]))
  await prometheus.choose(board.templating.list, wanted)
  seen.queries = prometheus.queries
  const marks = await Promise.all(board.annotations.list.map((one) => times(prometheus, one)))
  return { board, prometheus, marks: marks.flat() }
}

// The times of an annotation: its values, or the first of samples that follow each other.
async function times(prometheus, { expr, iconColor: color, useValueForTime }) {
  const { from, to } = prometheus.range
  const { result } = await prometheus.ask('query_range', { query: prometheus.fill(expr, 1000), start: from / 1000, end: to / 1000, step: 60 })
  const found = result.flatMap(({ values }) => useValueForTime
    ? values.map(([, value]) => Number(value))
    : values.filter(([time], at) => at === 0 || time - values[at - 1][0] > 60).map(([time]) => time * 1000))
  return [...new Set(found)].filter((time) => time >= from).map((time) => ({ time, color }))
}

function Board({ board, prometheus, marks }) {
  const whole = document.documentElement.clientWidth - 2 * MARGIN
  const column = (whole - 23 * GAP) / 24
  const opened = parameters.has('open')
  const panels = board.panels.flatMap((one) => (opened && one.panels ? [one, ...one.panels] : [one]))
  const place = ({ gridPos: { x, y, w, h } }) => ({
    left: x * (column + GAP), top: y * (CELL + GAP), width: Math.floor(w * column + (w - 1) * GAP), height: h * CELL + (h - 1) * GAP,
  })
  const chip = { border: `1px solid ${theme.colors.border.weak}`, borderRadius: 2, padding: '4px 8px', background: theme.colors.background.primary }
  const chosen = (name) => (prometheus.variables[name].length === 1 ? prometheus.variables[name][0] : 'All')
  // Opened rows lie over those below them: each gets its own height.
  let shift = 0
  const placed = panels.map((panel) => {
    const at = place(panel)
    if (opened && panel.type === 'row') {
      const bottom = Math.max(0, ...panel.panels.map((one) => place(one).top + place(one).height))
      const moved = { ...at, top: at.top + shift }
      panel.panels.forEach((one) => { one.shift = shift })
      shift += bottom - at.top - at.height
      return moved
    }
    return { ...at, top: at.top + (panel.shift ?? 0) }
  })
  const height = Math.max(...placed.map(({ top, height }) => top + height))
  return (
    <div style={{ background: theme.colors.background.canvas, color: theme.colors.text.primary, padding: MARGIN, fontSize: 14 }}>
      <div style={{ display: 'flex', flexWrap: 'wrap', alignItems: 'center', gap: 8, marginBottom: 8 }}>
        <b>{board.title}</b>
        {board.templating.list.map(({ name, label, type }) => (
          <span key={name} style={chip}><span style={{ color: theme.colors.text.secondary }}>{label}</span> {type === 'datasource' ? 'Prometheus' : chosen(name)}</span>
        ))}
        <span style={{ flex: 1 }} />
        {board.links.map(({ title }) => <span key={title} style={chip}>{title} ⌄</span>)}
        <span>{[prometheus.range.from, prometheus.range.to].map((time) => new Date(time).toISOString().slice(11, 16)).join(' – ')} UTC</span>
      </div>
      <div style={{ position: 'relative', height }}>
        {panels.map((panel, number) => (
          <div key={panel.id} style={{ position: 'absolute', ...placed[number] }}>
            {panel.type === 'row'
              ? <div style={{ padding: 4, fontWeight: 500 }}>{opened ? '⌄' : '›'} {panel.title}</div>
              : <Panel panel={panel} prometheus={prometheus} marks={marks} {...placed[number]} />}
          </div>
        ))}
      </div>
    </div>
  )
}

window.seen = seen
const root = createRoot(document.getElementById('root'))
read().then(
  (all) => root.render(<ThemeContext.Provider value={theme}><GlobalStyles /><Board {...all} /></ThemeContext.Provider>),
  (error) => { seen.errors.push(error.stack); document.body.append(error.stack) },
)
let quiet = 0
setInterval(() => {
  quiet = document.querySelector('section') && !seen.pending ? quiet + 1 : 0
  seen.ready = quiet > 6 || (seen.errors.length > 0 && !document.querySelector('section'))
}, 150)

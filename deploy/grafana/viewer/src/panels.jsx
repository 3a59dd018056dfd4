// Panels by kind, of Grafana's own components. Only the state timeline is drawn here.
import {
  applyFieldOverrides, createTheme, dateTime, FieldType, getDisplayValueAlignmentFactors, getFieldDisplayName,
  getFieldDisplayValues, Registry, standardTransformers, standardTransformersRegistry, transformDataFrame,
} from '@grafana/data'
import { BarGauge, BigValue, PanelChrome, TimeSeries, VizLegend, VizRepeater } from '@grafana/ui'
import { TableNG } from '@grafana/ui/unstable'
import React, { useEffect, useState } from 'react'
import { lastValueFrom } from 'rxjs'

export const parameters = new URLSearchParams(location.search)
export const theme = createTheme({ colors: { mode: parameters.get('theme') ?? 'dark' } })

// What the page tells its caller.
export const seen = { panels: {}, errors: [], pending: 0 }

standardTransformersRegistry.setInit(() =>
  ['merge', 'organize'].map((id) => {
    const found = Object.values(standardTransformers).find((one) => one.id === id)
    return { id, name: id, transformation: () => Promise.resolve(found) }
  }))

const PLAIN = ['unit', 'decimals', 'min', 'max', 'noValue', 'thresholds', 'mappings', 'color', 'links']
const property = (path, isCustom) =>
  ({ id: isCustom ? `custom.${path}` : path, path, name: path, isCustom, shouldApply: () => true, process: (value) => value })

// What Grafana's panels take where a board says nothing.
const USUAL = {
  timeseries: {
    color: { mode: 'palette-classic' },
    custom: {
      drawStyle: 'line', lineInterpolation: 'linear', fillOpacity: 0, gradientMode: 'none', pointSize: 5, axisPlacement: 'auto',
      axisLabel: '', axisColorMode: 'text', stacking: { mode: 'none', group: 'A' }, scaleDistribution: { type: 'linear' },
      hideFrom: { legend: false, tooltip: false, viz: false }, thresholdsStyle: { mode: 'off' }, spanNulls: false,
    },
  },
  table: { color: { mode: 'thresholds' }, custom: { align: 'auto', cellOptions: { type: 'auto' }, inspect: false } },
}

const USUAL_OPTIONS = { stat: { colorMode: 'value', graphMode: 'area', wideLayout: true } }

const CUSTOM = new Set([...Object.keys({ ...USUAL.timeseries.custom, ...USUAL.table.custom }), 'lineWidth', 'showPoints', 'axisSoftMax', 'width', 'minWidth'])
const fields = new Registry(() => [...PLAIN.map((name) => property(name, false)), ...[...CUSTOM].map((name) => property(name, true))])

function configuration(panel) {
  const { defaults, overrides = [] } = structuredClone(panel.fieldConfig)
  const usual = USUAL[panel.type] ?? { color: { mode: 'thresholds' } }
  defaults.color ??= usual.color
  defaults.mappings ??= []
  defaults.thresholds ??= { mode: 'absolute', steps: [{ color: 'green', value: null }] }
  const custom = { ...usual.custom, ...defaults.custom }
  if (custom.stacking) custom.stacking = { group: 'A', ...custom.stacking }
  const properties = overrides.flatMap((one) => one.properties)
  for (const { steps } of [defaults.thresholds, ...properties.filter(({ id }) => id === 'thresholds').map(({ value }) => value)])
    steps[0].value ??= -Infinity
  for (const one of properties)
    if (one.id === 'custom.hidden') Object.assign(one, { id: 'custom.hideFrom', value: { viz: one.value } })
  return { defaults: { ...defaults, custom }, overrides }
}

async function load(panel, prometheus, width) {
  const answers = await Promise.all(
    panel.targets.map((target) => prometheus.frames(target, width, panel.targets.length === 1)))
  let data = answers.flat()
  if (panel.transformations) data = await lastValueFrom(transformDataFrame(panel.transformations, data))
  const replaceVariables = (text) => prometheus.fill(String(text ?? ''), width)
  return applyFieldOverrides({
    data, fieldConfig: configuration(panel), replaceVariables, theme, timeZone: 'utc', fieldConfigRegistry: fields,
  })
}

const Words = ({ width, height, children }) => (
  <div data-words style={{ width, height, display: 'grid', placeItems: 'center', color: theme.colors.text.secondary, fontSize: 18 }}>
    {children}
  </div>
)

function Numbers({ panel, data, width, height }) {
  const { type } = panel
  const options = { ...USUAL_OPTIONS[type], ...panel.options }
  const getValues = () => getFieldDisplayValues({
    fieldConfig: configuration(panel), reduceOptions: { values: false, ...options.reduceOptions }, replaceVariables: (text) => text,
    theme, data, sparkline: options.graphMode === 'area', timeZone: 'utc',
  })
  seen.panels[panel.title] = getValues().map(({ display }) => display.text)
  const renderValue = ({ value, ...size }) => type === 'stat'
    ? <BigValue value={value.display} sparkline={value.sparkline} theme={theme} {...options} disableWideLayout={!options.wideLayout} {...size} />
    : <BarGauge value={value.display} field={value.field} display={value.view?.getFieldDisplayProcessor(value.colIndex)} theme={theme}
        itemSpacing={10} showUnfilled valueDisplayMode="text" {...options} {...size} />
  return (
    <VizRepeater
      getValues={getValues} getAlignmentFactors={getDisplayValueAlignmentFactors} renderValue={renderValue} width={width} height={height}
      source={data} renderCounter={0} autoGrid={type === 'stat'} orientation={type === 'stat' ? 'auto' : 'horizontal'}
      itemSpacing={type === 'stat' ? 3 : 10} minVizHeight={type === 'stat' ? 0 : 16} maxVizHeight={type === 'stat' ? undefined : 300}
    />
  )
}

function Lines({ panel, data, range, marks, width, height }) {
  seen.panels[panel.title] = data.map((frame) => getFieldDisplayName(frame.fields[1], frame, data))
  const [from, to] = [dateTime(range.from), dateTime(range.to)]
  const draw = (plot) => {
    for (const { time, color } of marks) {
      const x = plot.valToPos(time, 'x', true)
      const { ctx, bbox } = plot
      ctx.save()
      Object.assign(ctx, { strokeStyle: theme.visualization.getColorByName(color), lineWidth: 2 })
      ctx.setLineDash([5, 5])
      ctx.beginPath()
      ctx.moveTo(x, bbox.top)
      ctx.lineTo(x, bbox.top + bbox.height)
      ctx.stroke()
      ctx.restore()
    }
  }
  return (
    <TimeSeries
      frames={data} timeRange={{ from, to, raw: { from, to } }} timeZone="utc" width={width} height={height} options={panel.options}
      legend={{ showLegend: true, calcs: [], displayMode: 'list', placement: 'bottom' }}
    >
      {(builder) => void builder.addHook('draw', draw)}
    </TimeSeries>
  )
}

function States({ panel, data, range, width, height }) {
  const longest = Math.max(...data.map((frame) => getFieldDisplayName(frame.fields[1], frame, data).length))
  const left = Math.min(longest * 7 + 16, width / 3)
  const row = Math.min(60, (height - 40) / data.length)
  const names = data.map((frame) => getFieldDisplayName(frame.fields[1], frame, data))
  seen.panels[panel.title] = names
  const at = (time) => left + ((time - range.from) / (range.to - range.from)) * (width - left)
  const words = new Map()
  const bars = data.flatMap(({ fields: [{ values: times }, { values, display }] }, number) => {
    const found = []
    for (let begin = 0; begin < times.length; begin++) {
      if (values[begin] === null) continue
      let end = begin
      while (end + 1 < times.length && values[end + 1] === values[begin]) end++
      const { text, color } = display(values[begin])
      words.set(text, color)
      const x = at(times[begin])
      const place = { left: x, top: number * row, height: row * 0.85, width: Math.max(1, at(times[Math.min(end + 1, times.length - 1)]) - x) }
      found.push(<div key={`${number} ${begin}`} style={{ position: 'absolute', background: color, ...place }} />)
      begin = end
    }
    return found
  })
  return (
    <div style={{ position: 'relative', width, height }}>
      {names.map((name, number) => (
        <div key={name} style={{ position: 'absolute', top: number * row, width: left - 8, textAlign: 'right', fontSize: 12, whiteSpace: 'nowrap', overflow: 'hidden' }}>
          {name}
        </div>
      ))}
      {bars}
      <div style={{ position: 'absolute', bottom: 0 }}>
        <VizLegend displayMode="list" placement="bottom" items={[...words].map(([label, color]) => ({ label, color, yAxis: 1 }))} />
      </div>
    </div>
  )
}

function Rows({ panel, data: [frame], width, height }) {
  const shown = frame.fields.filter(({ config }) => !config.custom?.hideFrom?.viz)
  const { sortBy } = panel.options
  seen.panels[panel.title] = { rows: frame.length, columns: shown.map((field) => getFieldDisplayName(field, frame)) }
  return (
    <TableNG
      data={frame} width={width} height={height} sortBy={sortBy} cellHeight="sm" fieldConfig={configuration(panel)} structureRev={1}
      enableVirtualization={false} getActions={() => []}
    />
  )
}

const KINDS = { stat: Numbers, bargauge: Numbers, timeseries: Lines, 'state-timeline': States, table: Rows }

class Guard extends React.Component {
  state = {}
  static getDerivedStateFromError = (error) => ({ error })
  componentDidCatch(error) { seen.errors.push(`${this.props.title}: ${error.stack}`) }
  render() { return this.state.error ? null : this.props.children }
}

export function Panel({ panel, prometheus, marks, width, height }) {
  const [data, setData] = useState()
  useEffect(() => {
    seen.pending++
    load(panel, prometheus, Math.floor(width))
      .catch((error) => { seen.errors.push(`${panel.title}: ${error}`); return [] })
      .then(setData)
      .finally(() => seen.pending--)
  }, [])
  const Kind = KINDS[panel.type]
  const empty = !data?.some((frame) => frame.length)
  return (
    <PanelChrome width={width} height={height} title={panel.title} description={panel.description}>
      {(innerWidth, innerHeight) => data && (empty
        ? <Words width={innerWidth} height={innerHeight}>{panel.fieldConfig.defaults.noValue ?? 'No data'}</Words>
        : <Guard title={panel.title}>
            <Kind panel={panel} data={data} range={prometheus.range} marks={marks} width={innerWidth} height={innerHeight} />
          </Guard>)}
    </PanelChrome>
  )
}

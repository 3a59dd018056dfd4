// Take pictures of boards: `node shoot.js BOARDS JOBS`, where JOBS has a list of {out, query, width, port, now}. For each
// it writes a line of JSON with queries, figures, and faults that a program can see.
import fs from 'node:fs'
import http from 'node:http'
import path from 'node:path'
import puppeteer from 'puppeteer-core'

const HERE = path.dirname(new URL(import.meta.url).pathname)
const FOLD = 900 // pixels of a first screen
const TYPES = { html: 'text/html', js: 'text/javascript', css: 'text/css', svg: 'image/svg+xml', json: 'application/json' }

const [, , boards, jobs] = process.argv

const files = {
  boards: (rest) => path.join(boards, rest),
  public: (rest) => path.join(HERE, 'node_modules/@grafana/ui/dist/public', rest.replace('build/', '')),
}

let prometheus // the port of the one that is asked

const server = http.createServer((request, response) => {
  const url = new URL(request.url, 'http://x')
  const [, first, rest] = /^\/([^/]*)\/?(.*)$/.exec(url.pathname)
  if (first === 'prometheus') {
    const asked = http.get({ host: '127.0.0.1', port: prometheus, path: `/${rest}${url.search}` }, (answer) => {
      response.writeHead(answer.statusCode, { 'content-type': 'application/json' })
      answer.pipe(response)
    })
    return asked.on('error', () => response.writeHead(502).end())
  }
  const file = files[first]?.(rest) ?? path.join(HERE, 'dist', url.pathname === '/' ? 'index.html' : url.pathname)
  fs.readFile(file, (error, data) =>
    error ? response.writeHead(404).end() : response.writeHead(200, { 'content-type': TYPES[path.extname(file).slice(1)] ?? 'text/plain' }).end(data))
})
await new Promise((done) => server.listen(0, '127.0.0.1', done))

const browser = await puppeteer.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--hide-scrollbars', '--lang=en-GB'],
})

// In the page: what a reader would call a fault.
function faults(fold) {
  const found = []
  const box = (element) => element.getBoundingClientRect()
  for (const element of document.querySelectorAll('[data-words]'))
    if (element.textContent === 'No data' && box(element).top < fold) found.push('no data on the first screen')
  for (const title of document.querySelectorAll('section h2'))
    if (title.scrollWidth > title.clientWidth + 1) found.push(`title cut: ${title.textContent}`)
  const numbers = (color) => (/[\d.]+/.test(color) ? color.match(/[\d.]+/g).map(Number) : [0, 0, 0, 0])
  const light = (rgb) => {
    const [r, g, b] = rgb.map((part) => (part / 255 <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4))
    return 0.2126 * r + 0.7152 * g + 0.0722 * b
  }
  const under = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const [r, g, b, alpha = 1] = numbers(getComputedStyle(at).backgroundColor)
      if (alpha === 1) return [r, g, b]
    }
    return [255, 255, 255]
  }
  const texts = document.createTreeWalker(document.getElementById('root'), NodeFilter.SHOW_TEXT)
  while (texts.nextNode()) {
    const element = texts.currentNode.parentElement
    if (!texts.currentNode.textContent.trim() || element.closest('svg') || !element.checkVisibility({ checkOpacity: true })) continue
    const [one, two] = [numbers(getComputedStyle(element).color).slice(0, 3), under(element)].map(light).sort((a, b) => b - a)
    const contrast = (one + 0.05) / (two + 0.05)
    if (contrast < 4.5) found.push(`contrast ${contrast.toFixed(1)}: ${texts.currentNode.textContent.trim().slice(0, 40)}`)
    const { clientWidth, scrollWidth } = element
    if (innerWidth > 1000 && element.closest('[role=gridcell]') && scrollWidth > clientWidth + 1) found.push(`cell cut: ${element.textContent.slice(0, 40)}`)
  }
  return [...new Set(found)]
}

for (const { out, query, width, port, now, url } of JSON.parse(fs.readFileSync(jobs))) {
  if (url) { // any page: its first screen
    const page = await browser.newPage()
    await page.setViewport({ width, height: 760 })
    await page.goto(url, { waitUntil: 'networkidle2' })
    await page.screenshot({ path: out })
    await page.close()
    continue
  }
  prometheus = port
  const page = await browser.newPage()
  await page.emulateTimezone('UTC')
  // "14 minutes ago" counts from the time of the picture.
  await page.evaluateOnNewDocument((at) => {
    const begin = Date.now()
    const real = Date.now.bind(Date)
    Date.now = () => at * 1000 + real() - begin
  }, now)
  await page.setViewport({ width, height: FOLD })
  await page.goto(`http://127.0.0.1:${server.address().port}/?${new URLSearchParams({ ...query, now })}`)
  await page.waitForFunction('window.seen?.ready', { timeout: 60000 })
  const height = await page.evaluate(() => document.getElementById('root').scrollHeight)
  await page.setViewport({ width, height: Math.max(FOLD, height) })
  await new Promise((done) => setTimeout(done, 500))
  await page.screenshot({ path: out, ...(out.endsWith('.webp') && { clip: { x: 0, y: 0, width, height: 760 } }) })
  const seen = await page.evaluate(() => window.seen)
  console.log(JSON.stringify({ ...seen, faults: await page.evaluate(faults, FOLD) }))
  await page.close()
}
await browser.close()
server.close()

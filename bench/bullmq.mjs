// SPDX-License-Identifier: MIT
// BullMQ's part of bench/tasks.py: node bullmq.mjs MODULES REDIS_PORT. Orders come on stdin, a JSON object a line, and each
// is answered by one. Jobs have the bench's payload; nothing is retried, nothing removed.
import { createRequire } from 'node:module'
import { createInterface } from 'node:readline'

const require = createRequire(process.argv[2] + '/')
const { Queue, Worker } = require('bullmq')
const connection = { host: '127.0.0.1', port: Number(process.argv[3]), maxRetriesPerRequest: null }
const queues = {}
const late = []

function queue (name) {
  queues[name] ??= new Queue(name, { connection })
  return queues[name]
}

// `batch` jobs an addBulk, `side` of them side by side. at_ms: when the first is due; step_ms: each one that later
async function add ({ name, n, batch, side, at_ms, step_ms, payload }) {
  const q = queue(name)
  await q.waitUntilReady()
  let next = 0
  const began = process.hrtime.bigint()
  const one = async () => {
    while (next < n) {
      const from = next
      next = Math.min(n, from + batch)
      const now = Date.now()
      const jobs = []
      for (let i = from; i < next; i++) {
        const at = at_ms + i * step_ms
        jobs.push({ name: 'go', data: { at, payload }, opts: { delay: Math.max(0, at - now) } })
      }
      await q.addBulk(jobs)
    }
  }
  await Promise.all(Array.from({ length: side }, one))
  return { seconds: Number(process.hrtime.bigint() - began) / 1e9 }
}

// Works from now on; how late each job began is kept.
async function work ({ name, concurrency }) {
  const w = new Worker(name, async job => { late.push(Date.now() - job.data.at) }, { connection, concurrency })
  await w.waitUntilReady()
  return {}
}

const orders = { add, work, late: async () => ({ late: late.splice(0) }) }
for await (const line of createInterface({ input: process.stdin })) {
  const order = JSON.parse(line)
  console.log(JSON.stringify(await orders[order.order](order)))
}
process.exit(0)

-- C functions of libmoon and MoonGen that are about buffers, devices, rings, and rate control.

local ffi = require "ffi"
local limiter = require "limiter"
local simulation = require "simulation"
local wire = require "wire"

local HEADROOM_BYTES = 128
local MOST_QUEUES = 64
local PCI_ID = 0x808610fb
local TX_TIMESTAMP = 2ULL ^ 51
local ETHER_TYPE_PTP = "\136\247"
local SEQUENCE_AT = 44

-- What it takes to find a ring full: longer than in truth, so that waiting takes few turns.
local FULL_S = 1e-3

local function addressOf(pointer)
  return tonumber(ffi.cast("intptr_t", ffi.cast("void*", pointer)))
end

-- Adds the functions to `c`. Buffers come back to the pool that they are from, with what is in them, as those of DPDK.
return function(c, options, newHandles)
  wire.setUp(options)
  local newPool, poolOf
  local buffers = {}

  function c.init_mem(count, _, bytes)
    if not newPool then
      newPool, poolOf = newHandles("struct mempool*")
    end
    return newPool{left = count, bytes = bytes, free = {}, first = 1, last = 0}
  end

  local function give(buffer)
    local pool = buffer.pool
    pool.last = pool.last + 1
    pool.free[pool.last] = buffer
  end

  local function make(pool)
    if pool.left == 0 then
      error("fake: a memory pool has no buffers left", 0)
    end
    pool.left = pool.left - 1
    local data = ffi.new("uint8_t[?]", pool.bytes + HEADROOM_BYTES)
    local buffer = {pool = pool, data = data, mbuf = ffi.new("struct rte_mbuf")}
    buffer.pointer = ffi.cast("struct rte_mbuf*", buffer.mbuf)
    buffer.pointer.buf_addr, buffer.pointer.buf_len = buffer.data, pool.bytes + HEADROOM_BYTES
    buffers[addressOf(buffer.pointer)] = buffer
    return buffer
  end

  -- Buffers that were never used come first, as in a pool of DPDK, which hands them out in turn.
  local function take(pool)
    local buffer
    if pool.left > 0 then
      buffer = make(pool)
    elseif pool.first <= pool.last then
      buffer = pool.free[pool.first]
      pool.free[pool.first] = nil
      pool.first = pool.first + 1
    else
      buffer = make(pool)
    end
    local mbuf = buffer.pointer
    mbuf.data_off, mbuf.refcnt, mbuf.nb_segs, mbuf.ol_flags = HEADROOM_BYTES, 1, 1, 0
    return mbuf
  end

  function c.alloc_mbuf(handle)
    return take(poolOf(handle))
  end

  function c.alloc_mbufs(handle, array, count, length)
    local pool = poolOf(handle)
    for n = 0, count - 1 do
      local mbuf = take(pool)
      mbuf.pkt_len, mbuf.data_len = length, length
      array[n] = mbuf
    end
  end

  local function release(mbuf)
    give(buffers[addressOf(mbuf)])
  end
  c.rte_pktmbuf_free_export = release

  -- Devices ----------------------------------------------------------------------------------------------------------

  local devices = {}
  local driver = ffi.new("char[32]", options.noTimestamps and "net_fake" or "net_ixgbe")

  function c.rte_eal_init(count, words)
    local listed = 0
    for n = 0, count - 1 do
      listed = listed + (ffi.string(words[n]):match("^%-w") and 1 or 0)
    end
    options.devices = listed > 0 and listed or options.devices
    return count
  end

  function c.rte_eth_dev_count()
    return options.devices
  end

  function c.dpdk_get_max_ports()
    return 32
  end

  function c.dpdk_get_socket()
    return 0
  end

  function c.dpdk_get_pci_id()
    return PCI_ID
  end

  function c.dpdk_get_mac_addr(port, text)
    ffi.copy(text, ("02:00:00:00:00:%02X"):format(port))
    return 0
  end

  function c.rte_eth_dev_info_get(port, info)
    info.driver_name = driver
    info.max_rx_queues, info.max_tx_queues, info.reta_size = MOST_QUEUES, MOST_QUEUES, 128
    for _, limit in ipairs{info.rx_desc_lim, info.tx_desc_lim} do
      limit.nb_max, limit.nb_min, limit.nb_align = 4096, 32, 8
    end
    local device = devices[port]
    info.nb_rx_queues, info.nb_tx_queues = device and device.rxQueues or 0, device and #device.queues + 1 or 0
  end

  function c.dpdk_configure_device(config)
    local device = {
      port = wire.open(config.port), rxQueues = config.rx_queues, queues = {}, pools = {}, arrived = {}, probes = 0,
    }
    for n = 0, config.tx_queues - 1 do
      device.queues[n] = wire.newQueue(device.port, n)
    end
    for n = 0, config.rx_queues - 1 do
      device.pools[n] = config.mempools[n]
    end
    devices[config.port] = device
    return 0
  end

  function c.rte_eth_promiscuous_enable()
  end

  function c.rte_eth_link_get_nowait(_, link)
    link.link_speed, link.link_duplex, link.link_status = options.linkMbit, 0, 1
  end

  function c.rte_eth_set_queue_rate_limit(port, queue, mbit)
    wire.limit(devices[port].queues[queue], mbit)
    return 0
  end

  function c.rte_eth_stats_get(port, stats)
    local counters = devices[port].port
    stats.opackets, stats.obytes = counters.tx.packets, counters.tx.bytes
    stats.ipackets, stats.ibytes = counters.rx.packets, counters.rx.bytes
    stats.imissed, stats.rx_nombuf = 0, 0
    return 0
  end

  function c.dpdk_get_rte_queue_stat_cntrs_num()
    return 16
  end

  function c.moongen_get_bad_pkts_sent()
    return 0
  end
  c.moongen_get_bad_bytes_sent = c.moongen_get_bad_pkts_sent

  -- Sends the frame of a buffer. Those that ask for a timestamp are probes: they come back later, or get lost.
  local function transmit(port, queue, mbuf)
    local device = devices[port]
    local frame = ffi.string(ffi.cast("uint8_t*", mbuf.buf_addr) + mbuf.data_off, mbuf.pkt_len)
    local stamped = bit.band(mbuf.ol_flags, TX_TIMESTAMP) ~= 0
    release(mbuf)
    local to = wire.transmit(device.queues[queue], frame)
    if stamped and frame:sub(13, 14) == ETHER_TYPE_PTP then
      device.probes, device.sentNs = device.probes + 1, math.floor(simulation.now() * 1e9 + 0.5)
      local lost = options.loseProbe > 0 and device.probes % options.loseProbe == 0
      if to and not lost then
        local nanoseconds = device.sentNs + 5000 + device.probes % 7 * 10
        table.insert(devices[to.number].arrived, {atNs = nanoseconds, frame = frame})
      end
    end
  end

  function c.dpdk_send_all_packets(port, queue, array, count)
    for n = 0, count - 1 do
      transmit(port, queue, array[n])
    end
  end

  local function arrived(device)
    local first = device.arrived[1]
    return first and first.atNs <= simulation.now() * 1e9 and first or nil
  end

  function c.rte_eth_rx_burst_export(port, queue, array, count)
    local device = devices[port]
    local probe = arrived(device)
    if not probe or queue ~= device.probeQueue or count < 1 then
      return 0
    end
    table.remove(device.arrived, 1)
    local high, low = probe.frame:byte(SEQUENCE_AT + 1, SEQUENCE_AT + 2)
    device.receivedNs, device.sequence = probe.atNs, high * 256 + low
    local mbuf = c.alloc_mbuf(device.pools[queue])
    ffi.copy(ffi.cast("uint8_t*", mbuf.buf_addr) + mbuf.data_off, probe.frame, #probe.frame)
    mbuf.pkt_len, mbuf.data_len = #probe.frame, #probe.frame
    array[0] = mbuf
    return 1
  end

  -- Registers and timestamps, as those of ixgbe ------------------------------------------------------------------------

  -- Reading a counter clears it.
  local function sinceLast(device, direction, unit)
    device.read = device.read or {}
    local key, total = direction .. unit, device.port[direction][unit]
    local before = device.read[key] or 0
    device.read[key] = total
    return total - before
  end

  local REGISTERS = {
    [0x4074] = function(d) return sinceLast(d, "rx", "packets") end,
    [0x4088] = function(d) return sinceLast(d, "rx", "bytes") end,
    [0x408c] = function() return 0 end,
    [0x4080] = function(d) return sinceLast(d, "tx", "packets") end,
    [0x4090] = function(d) return sinceLast(d, "tx", "bytes") end,
    [0x4094] = function() return 0 end,
    [0x5188] = function(d) return d.receivedNs and 1 or 0 end,
    [0x51a8] = function(d)
      return (math.floor(d.sequence / 256) + d.sequence % 256 * 256) * 65536
    end,
  }
  local PROBE_FILTER = 0xec0c

  function c.read_reg32(port, register)
    local read = REGISTERS[register] or error(("fake: there is no register 0x%x"):format(register))
    return read(devices[port])
  end

  function c.write_reg32(port, register, value)
    if register == PROBE_FILTER then
      devices[port].probeQueue = bit.band(bit.rshift(value, 16), 0x7f)
    end
  end

  local function stamp(nanoseconds, ts)
    if not nanoseconds then
      return -1
    end
    ts.tv_sec, ts.tv_nsec = math.floor(nanoseconds / 1e9), nanoseconds % 1e9
    return 0
  end

  function c.rte_eth_timesync_read_tx_timestamp(port, ts)
    local device = devices[port]
    local nanoseconds = device.sentNs
    device.sentNs = nil
    return stamp(nanoseconds, ts)
  end

  function c.rte_eth_timesync_read_rx_timestamp(port, ts)
    local device = devices[port]
    local nanoseconds = device.receivedNs
    device.receivedNs = nil
    return stamp(nanoseconds, ts)
  end

  for _, name in ipairs{"rte_eth_timesync_enable", "libmoon_sync_clocks", "libmoon_ixgbe_reset_timecounters"} do
    c[name] = function()
      return 0
    end
  end

  -- Rings and rate control ---------------------------------------------------------------------------------------------

  local newRing, ringOf

  function c.create_ring(size)
    assert(size - 1 == limiter.RING_FRAMES, "fake: only rings of the usual size are implemented")
    if not newRing then
      newRing, ringOf = newHandles("struct rte_ring*")
    end
    return newRing(limiter.newRing())
  end

  function c.ring_enqueue(ring, array, count)
    local items = {}
    for n = 0, count - 1 do
      items[n + 1] = {mbuf = array[n], length = array[n].pkt_len, delay = tonumber(array[n].udata64)}
    end
    if not ringOf(ring):put(items) then
      simulation.advance(simulation.now() + FULL_S)
      return 0
    end
    return count
  end

  local function limit(mode, ring, port, queue, delayNs, control)
    limiter.run{
      mode = mode, delayNs = delayNs, linkMbit = options.linkMbit, ring = ringOf(ring),
      transmit = function(item)
        transmit(port, queue, item.mbuf)
      end,
      stopped = function()
        return tonumber(control.stop) ~= 0
      end,
    }
  end

  function c.mg_rate_limiter_main_loop(ring, port, queue, _, control)
    limit("custom", ring, port, queue, nil, control)
  end

  function c.mg_rate_limiter_cbr_main_loop(ring, port, queue, delayNs, control)
    limit("cbr", ring, port, queue, delayNs, control)
  end

  function c.mg_rate_limiter_poisson_main_loop(ring, port, queue, delayNs, _, control)
    limit("poisson", ring, port, queue, delayNs, control)
  end
end

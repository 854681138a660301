-- Random numbers: every Lua state of MoonGen draws numbers of its own, so every task here does, too.
-- The generator is xorshift128 (Marsaglia, Xorshift RNGs, 2003).

local bit = require "bit"

local prng = {}

local band, bxor, lshift, rshift, tobit = bit.band, bit.bxor, bit.lshift, bit.rshift, bit.tobit
local DISCARDED = 16

-- A pair of functions that behave as math.random and math.randomseed of one Lua state.
function prng.new()
  local x, y, z, w

  local function step()
    local t = bxor(x, lshift(x, 11))
    x, y, z = y, z, w
    w = bxor(w, rshift(w, 19), t, rshift(t, 8))
    return w
  end

  local function seed(number)
    local state = tobit(math.floor(number))
    local function scrambled()
      state = tobit(state * 1664525 % 2 ^ 32 + 1013904223)
      return state
    end
    x, y, z, w = scrambled(), scrambled(), scrambled(), bxor(scrambled(), 1)
    if band(bxor(x, -1), bxor(y, -1), bxor(z, -1), bxor(w, -1)) == -1 then
      w = 1
    end
    for _ = 1, DISCARDED do
      step()
    end
  end

  local function random(low, high)
    local high27, low26 = rshift(step(), 5), rshift(step(), 6)
    local share = (high27 * 2 ^ 26 + low26) / 2 ^ 53
    if not low then
      return share
    end
    if not high then
      low, high = 1, low
    end
    return math.floor(share * (high - low + 1)) + low
  end

  seed(0)
  return random, seed
end

return prng

-- The part of argparse that scripts use: positional arguments, options, flags.

local strict = require "strict"

local arguments = {}

local element = {}

function element.convert(self, converter)
  self.converter = converter
  return self.public
end

function element.default(self, value)
  self.fallback = value
  return self.public
end

function element.target(self, name)
  self.key = name
  return self.public
end

function element.args(self, count)
  assert(type(count) == "number", "fake: args() takes a number here")
  self.count = count
  return self.public
end

-- An object whose methods act on a hidden state.
local function expose(state, methods, what)
  local public = {}
  for name, method in pairs(methods) do
    public[name] = function(_, ...)
      return method(state, ...)
    end
  end
  state.public = strict.object(public, what)
  return state.public
end

local function newElement(kind, names, description)
  local list, long = {}, nil
  for name in names:gmatch("%S+") do
    table.insert(list, name)
    long = long or name:match("^%-%-(.+)")
  end
  local key = (long or list[1]:gsub("^%-+", "")):gsub("%-", "_")
  return {kind = kind, names = list, key = key, description = description, count = kind == "flag" and 0 or 1}
end

local function usage(parser)
  local words = {"Usage: moongen [-h]"}
  for _, e in ipairs(parser.elements) do
    if e.kind == "argument" then
      table.insert(words, "<" .. e.names[1] .. ">")
    else
      table.insert(words, "[" .. e.names[1] .. (e.count > 0 and " <" .. e.key .. ">" or "") .. "]")
    end
  end
  return table.concat(words, " ")
end

local function fail(parser, message)
  io.stderr:write(usage(parser), "\n\nError: ", message, "\n")
  os.exit(1)
end

local function converted(parser, e, text)
  if not e.converter or type(text) ~= "string" then
    return text
  end
  local value, message = e.converter(text)
  if value == nil then
    fail(parser, message or "malformed argument '" .. text .. "'")
  end
  return value
end

local parserMethods = {}

function parserMethods.description(self)
  return self.public
end

for _, kind in ipairs{"argument", "option", "flag"} do
  parserMethods[kind] = function(self, names, description)
    local e = newElement(kind, names, description)
    table.insert(self.elements, e)
    for _, other in ipairs(self.elements) do
      for _, name in ipairs(e.names) do
        for _, taken in ipairs(other.names) do
          assert(other == e or name ~= taken, "fake: " .. name .. " is declared twice")
        end
      end
    end
    return expose(e, element, "an argument")
  end
end

function parserMethods.parse(self)
  local byName, positional, result, at = {}, {}, {}, 1
  for _, e in ipairs(self.elements) do
    if e.kind == "argument" then
      table.insert(positional, e)
    end
    for _, name in ipairs(e.names) do
      byName[name] = e
    end
  end
  local words, nextPositional = self.words, 1
  local function take(e, given)
    local values = {given and converted(self, e, given)}
    while #values < e.count do
      local word = words[at]
      if word == nil or word:match("^%-%D") then
        fail(self, "too few arguments for '" .. e.names[1] .. "'")
      end
      at = at + 1
      table.insert(values, converted(self, e, word))
    end
    if e.count == 0 then
      result[e.key] = true
    elseif e.count == 1 then
      result[e.key] = values[1]
    else
      result[e.key] = values
    end
  end
  while at <= #words do
    local word = words[at]
    if word == "-h" or word == "--help" then
      print(usage(self))
      os.exit(0)
    elseif word:match("^%-%D") then
      local name, value = word:match("^(%-%-[^=]+)=(.*)$")
      if not name and not word:match("^%-%-") and #word > 2 then
        name, value = word:sub(1, 2), word:sub(3)
      end
      local e = byName[name or word]
      if not e or e.kind == "argument" then
        fail(self, "unknown option '" .. (name or word) .. "'")
      end
      at = at + 1
      take(e, value)
    else
      local e = positional[nextPositional]
      if not e then
        fail(self, "too many arguments")
      end
      nextPositional = nextPositional + 1
      take(e)
    end
  end
  for _, e in ipairs(self.elements) do
    if result[e.key] == nil then
      if e.kind == "argument" and e.fallback == nil then
        fail(self, "missing argument '" .. e.names[1] .. "'")
      end
      result[e.key] = converted(self, e, e.fallback)
    end
  end
  return result
end

-- A parser for the words of a command line.
function arguments.parser(words)
  return expose({elements = {}, words = words}, parserMethods, "the parser")
end

return arguments

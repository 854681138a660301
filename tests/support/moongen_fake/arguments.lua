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
  if not e.converter then
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

-- The state of parsing: results, elements by their names, and the option or argument that takes the next word.
local function newState(self)
  local state = {parser = self, result = {}, byName = {}, positional = {}, next = 1, option = nil, given = {}}
  for _, e in ipairs(self.elements) do
    if e.kind == "argument" then
      table.insert(state.positional, e)
    end
    for _, name in ipairs(e.names) do
      state.byName[name] = e.kind ~= "argument" and e or nil
    end
    if type(e.fallback) ~= "string" then
      state.result[e.key] = e.fallback
    end
  end
  return state
end

local function finish(state, e, values)
  if e.count == 0 then
    state.result[e.key] = true
  else
    state.result[e.key] = e.count == 1 and values[1] or values
  end
  state.given[e] = true
end

-- An option that was begun gets no more words.
local function close(state)
  local open = state.option
  if open then
    state.option = nil
    local needed = ("requires %d arguments"):format(open.element.count)
    fail(state.parser, ("option '%s' %s"):format(open.name, open.element.count == 1 and "requires an argument" or needed))
  end
end

local function begin(state, name)
  local e = state.byName[name]
  if not e then
    fail(state.parser, ("unknown option '%s'"):format(name))
  end
  close(state)
  if e.count == 0 then
    finish(state, e)
  else
    state.option = {element = e, name = name, values = {}}
  end
  return e
end

local function pass(state, word)
  local open = state.option
  if open then
    table.insert(open.values, converted(state.parser, open.element, word))
    if #open.values == open.element.count then
      state.option = nil
      finish(state, open.element, open.values)
    end
    return
  end
  local e = state.positional[state.next]
  if not e then
    fail(state.parser, "too many arguments")
  end
  assert(e.count == 1, "fake: only one word for an argument is implemented")
  state.next = state.next + 1
  finish(state, e, {converted(state.parser, e, word)})
end

-- -x, -xVALUE, or several flags in one word.
local function short(state, word)
  for n = 2, #word do
    local e = begin(state, "-" .. word:sub(n, n))
    if n < #word and e.count > 0 then
      pass(state, word:sub(n + 1))
      return
    end
  end
end

local function long(state, word)
  local name, value = word:match("^(.-)=(.*)$")
  local e = begin(state, name or word)
  if name and e.count == 0 then
    fail(state.parser, ("option '%s' does not take arguments"):format(name))
  elseif name then
    pass(state, value)
  end
end

function parserMethods.parse(self)
  local state, options = newState(self), true
  for _, word in ipairs(self.words) do
    if not options or word:sub(1, 1) ~= "-" or word == "-" then
      pass(state, word)
    elseif word == "--" then
      close(state)
      options = false
    elseif word == "-h" or word == "--help" then
      print(usage(self))
      os.exit(0)
    elseif word:sub(2, 2) == "-" then
      long(state, word)
    else
      short(state, word)
    end
  end
  close(state)
  for _, e in ipairs(self.elements) do
    if not state.given[e] and type(e.fallback) == "string" then
      finish(state, e, {converted(self, e, e.fallback)})
    elseif not state.given[e] and e.kind == "argument" then
      fail(self, ("missing argument '%s'"):format(e.names[1]))
    end
  end
  return state.result
end

-- A parser for the words of a command line.
function arguments.parser(words)
  return expose({elements = {}, words = words}, parserMethods, "the parser")
end

return arguments

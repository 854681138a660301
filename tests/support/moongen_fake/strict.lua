-- Tables in which a name that does not exist is an error.

local strict = {}

-- `fields` as a table that can be read only, and only where there is something.
function strict.object(fields, what)
  return setmetatable({}, {
    __index = function(_, key)
      local value = fields[key]
      if value == nil then
        error(("fake: %s has no %s"):format(what, tostring(key)), 2)
      end
      return value
    end,
    __newindex = function(_, key)
      error(("fake: %s cannot be changed (%s)"):format(what, tostring(key)), 2)
    end,
    __fields = fields,
  })
end

-- The globals of one Lua state. After `seal()`, new ones cannot be made.
function strict.globals(fields)
  local sealed = false
  local environment = setmetatable(fields, {
    __index = function(_, key)
      error("fake: undefined global " .. tostring(key), 2)
    end,
    __newindex = function(self, key, value)
      if sealed then
        error("fake: a task assigns to global " .. tostring(key), 2)
      end
      rawset(self, key, value)
    end,
  })
  return environment, function()
    sealed = true
  end
end

return strict

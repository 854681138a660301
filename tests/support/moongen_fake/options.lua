-- Options of the double: words --fake-KEY[=VALUE] in front of the script, as a table with KEY as camelCase.

-- Returns the options, with defaults and with the files to write opened, and the other words.
return function(given)
  local options, words = {linkMbit = 10, devices = 2, cores = 16, loseProbe = 0}, {}
  for _, word in ipairs(given) do
    local key, value = word:match("^%-%-fake%-([^=]+)=?(.*)$")
    if not key or #words > 0 then
      table.insert(words, word)
    else
      key = key:gsub("%-(.)", string.upper)
      options[key] = tonumber(value) or (value == "" and true) or value
    end
  end
  for _, name in ipairs{"times", "dump"} do
    options[name] = options[name] and assert(io.open(options[name], "w"))
  end
  return options, words
end

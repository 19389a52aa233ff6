-- The word by which a node is ready: where the log ends. Appends the clock's tick if it is due.
local no = refused() or early()
if no then return no end
local cleared = clear()
if advance() or cleared then save() end
forget(500)
return where()

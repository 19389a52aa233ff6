-- An operator accepts the log as it is. That holds for all that any node knew when it told of the loss.
if not epoch then return {'another'} end
local loss = waits
accept()
return {'accepted', loss}

-- Requests with tokens that are not revoked, drawn from a million, which are among the revoked ones in store order.
local threads = 0

function setup(thread)
    threads = threads + 1
    thread:set("seed", threads)
end

function init(args)
    math.randomseed(seed)
    with_ids = args[1] == "ids"
    number = 0
    start = os.time()
end

function request()
    local i = math.random(1, 1000000)
    local spread = (i * 2654435761) % 4294967296
    local token = string.format("%04x%04x-good-%d", math.floor(spread / 65536), spread % 65536, i)
    local headers = { ["Authorization"] = "Bearer " .. token }
    if with_ids then
        number = number + 1
        headers["X-Request-Id"] = start .. "-" .. seed .. "-" .. number
    end
    return wrk.format("GET", "/protected", headers)
end

-- One line for load.sh: requests, seconds, errors, and the latency in milliseconds at the 50th and 99th percentile.
function done(summary, latency, requests)
    local errors = summary.errors
    local failed = errors.connect + errors.read + errors.write + errors.status + errors.timeout
    io.write(string.format("RESULT %d %.6f %d %.3f %.3f\n", summary.requests, summary.duration / 1e6, failed,
        latency:percentile(50) / 1000, latency:percentile(99) / 1000))
end

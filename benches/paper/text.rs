//! Numbers as they are shown, in tables and in charts.

/// A rate on an axis, with as few digits as possible.
pub(crate) fn short_percent(rate: f64) -> String {
    let text = format!("{:.8}", rate * 100.0);
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

/// For example "192 MiB".
pub(crate) fn size(bytes: usize) -> String {
    if bytes >= 1 << 20 { format!("{} MiB", bytes >> 20) } else { format!("{} KiB", bytes >> 10) }
}

//! PURE: what is to be said of the clock, by the filter's answers to its ticks.
//!
//! The identifiers age by the wall clock, the time since 1970, because a filter that is loaded again must go on from where it
//! was saved. A wall clock can be wrong, and can be set.

use std::time::{Duration, Instant};

use concurrent_cuckoo_filter::Advance;

/// The same warning does not come again within this time. The filter counts what is not said: `clock_steps_back` and
/// `clock_jumps` of its statistics.
const QUIET: Duration = Duration::from_secs(60 * 60);

/// What has been said of the clock.
#[derive(Debug)]
pub(crate) struct Clock {
    /// Seconds of a generation.
    period: u64,
    generations: u64,
    said_behind: Option<Instant>,
    said_jump: Option<Instant>,
}

impl Clock {
    pub(crate) fn new(period: u64, generations: usize) -> Self {
        Self { period, generations: generations as u64, said_behind: None, said_jump: None }
    }

    /// What is to be said, at the moment `now`, of the filter's answer to a tick.
    pub(crate) fn warning(&mut self, answer: Advance, now: Instant) -> Option<String> {
        let period = self.period;
        match answer {
            // Behind by one is no reason to worry: of two threads that read the clock, one comes late.
            Advance::Behind { by, .. } if by > 1 && is_due(&mut self.said_behind, now) => Some(format!(
                "the clock is about {} s behind what it showed before; until it has caught up, no request identifier expires, \
                 and there may be no room for new ones; if it will not catch up, start the server again without \
                 request-ids.snapshot",
                by.saturating_mul(period)
            )),
            Advance::Rotated { ticks, .. } if ticks >= self.generations && is_due(&mut self.said_jump, now) => {
                Some(format!(
                    "the clock has gone on by about {} s at once, so all request identifiers seen before have expired; that is \
                     right if the server was off or asleep for so long, and otherwise the clock is wrong",
                    ticks.saturating_mul(period)
                ))
            }
            _ => None,
        }
    }
}

/// Whether it is time to say something again; notes that it is said.
fn is_due(said: &mut Option<Instant>, now: Instant) -> bool {
    let is_due = said.is_none_or(|said| now.saturating_duration_since(said) >= QUIET);
    if is_due {
        *said = Some(now);
    }
    is_due
}

#[cfg(test)]
mod tests {
    use concurrent_cuckoo_filter::RotatingCuckooFilter;

    use super::*;

    const GENERATIONS: usize = 4;

    /// The answers to these ticks.
    fn answers<const N: usize>(ticks: [u64; N]) -> [Advance; N] {
        let filter = RotatingCuckooFilter::<str>::builder().capacity(10).generations(GENERATIONS).build().unwrap();
        ticks.map(|tick| filter.advance_to(tick))
    }

    #[test]
    fn a_clock_that_goes_on_is_not_mentioned() {
        let mut clock = Clock::new(60, GENERATIONS);
        for answer in answers([28_500_000, 28_500_000, 28_500_001, 28_500_004, 28_500_003]) {
            assert_eq!(clock.warning(answer, Instant::now()), None, "{answer:?}");
        }
    }

    #[test]
    fn a_clock_that_is_behind_or_jumps_is_mentioned_once_an_hour() {
        let mut clock = Clock::new(60, GENERATIONS);
        let [_, behind, jump] = answers([28_500_010, 28_500_008, 28_500_014]);
        let start = Instant::now();
        for (after, said) in [(0, true), (1, false), (3599, false), (3600, true), (3601, false)] {
            let now = start + Duration::from_secs(after);
            for (answer, what) in [(behind, "about 120 s behind"), (jump, "on by about 240 s at once")] {
                let warning = clock.warning(answer, now);
                assert_eq!(warning.is_some(), said, "{warning:?} after {after} s");
                assert!(warning.is_none_or(|warning| warning.contains(what)));
            }
        }
    }
}

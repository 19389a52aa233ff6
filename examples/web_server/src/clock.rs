//! PURE: when to warn about the clock, by a filter's answers to its ticks.

use std::time::{Duration, Instant};

use concurrent_cuckoo_filter::Advance;

/// The same warning is not repeated within this time. The filter's statistics count every event: `clock_steps_back`
/// and `clock_jumps`.
const QUIET: Duration = Duration::from_secs(60 * 60);

/// The warnings about the clock of one filter.
#[derive(Debug)]
pub(crate) struct Clock {
    /// How many seconds a tick has.
    period: u64,
    /// After so many ticks at once, everything has expired.
    lifetime: u64,
    consequences: Consequences,
    said_behind: Option<Instant>,
    said_jump: Option<Instant>,
}

/// What a wrong clock does to a filter, as text for the warnings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Consequences {
    /// What happens until the clock has caught up.
    pub(crate) behind: &'static str,
    /// What happens after a jump ahead, and what to do if the jump was wrong.
    pub(crate) jump: &'static str,
}

impl Clock {
    pub(crate) fn new(period: u64, lifetime: u64, consequences: Consequences) -> Self {
        Self { period, lifetime, consequences, said_behind: None, said_jump: None }
    }

    /// The warning to print at the moment `now`, after the filter's answer to a tick.
    pub(crate) fn warning(&mut self, answer: Advance, now: Instant) -> Option<String> {
        let Self { period, consequences: Consequences { behind, jump }, .. } = *self;
        match answer {
            // Behind by one is harmless: of two threads that read the clock, one comes late.
            Advance::Behind { by, .. } if by > 1 && is_due(&mut self.said_behind, now) => Some(format!(
                "the clock is about {} s behind what it showed before; until it has caught up, {behind}",
                by.saturating_mul(period)
            )),
            Advance::Forward { ticks, .. } if ticks >= self.lifetime && is_due(&mut self.said_jump, now) => {
                Some(format!("the clock has advanced by about {} s at once, so {jump}", ticks.saturating_mul(period)))
            }
            _ => None,
        }
    }
}

/// Whether it is time to repeat a warning. If so, records that it was printed.
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

    fn clock() -> Clock {
        Clock::new(60, GENERATIONS as u64, Consequences { behind: "nothing expires", jump: "everything has expired" })
    }

    /// The answers to these ticks.
    fn answers<const N: usize>(ticks: [u64; N]) -> [Advance; N] {
        let filter = RotatingCuckooFilter::<str>::builder().capacity(10).generations(GENERATIONS).build().unwrap();
        ticks.map(|tick| filter.advance_to(tick))
    }

    #[test]
    fn a_clock_that_goes_on_is_not_mentioned() {
        let mut clock = clock();
        for answer in answers([28_500_000, 28_500_000, 28_500_001, 28_500_004, 28_500_003]) {
            assert_eq!(clock.warning(answer, Instant::now()), None, "{answer:?}");
        }
    }

    #[test]
    fn a_clock_that_is_behind_or_jumps_is_mentioned_once_an_hour() {
        let mut clock = clock();
        let [_, behind, jump] = answers([28_500_010, 28_500_008, 28_500_014]);
        let start = Instant::now();
        for (after, said) in [(0, true), (1, false), (3599, false), (3600, true), (3601, false)] {
            let now = start + Duration::from_secs(after);
            for (answer, what) in [
                (behind, "about 120 s behind what it showed before; until it has caught up, nothing expires"),
                (jump, "advanced by about 240 s at once, so everything has expired"),
            ] {
                let warning = clock.warning(answer, now);
                assert_eq!(warning.is_some(), said, "{warning:?} after {after} s");
                assert!(warning.is_none_or(|warning| warning.contains(what)));
            }
        }
    }
}

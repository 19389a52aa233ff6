//! PURE: what time it is for the engine, as far as this node believes it.
//!
//! The engine's clock decides when entries are forgotten, and a clock can jump. So a node compares it with its own
//! clocks:
//!
//! - *At the start* with the clock of its machine: the two must agree, by the margin.
//! - *From then on* with its monotonic clock, which nobody can set. The difference of the two is taken once, and then
//!   follows the engine's clock by 1 second in 1,000 at most. So a jump is refused, however long it lasts, and a clock
//!   that is a little fast or slow is not.
//!
//! A script that appends a tick, judges a lifetime or forgets a key receives the latest time that its caller allows,
//! and refuses to run if the engine's clock is later. A node applies no tick that is later than it allows. So two
//! clocks must agree before anything is forgotten: the engine's, and that of each node that forgets.

use std::time::Duration;

use super::clock::Moment;
use crate::change::Tick;

/// The difference follows the engine's clock by one part in this many.
const DRIFT: i64 = 1000;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Time {
    margin: i64,
    /// What the engine's clock shows, less what the node's own shows, in milliseconds; and when that was compared.
    engine: Option<(i64, Moment)>,
}

fn ms(time: Duration) -> i64 {
    time.as_millis() as i64
}

fn local(now: Moment) -> i64 {
    (now.0 / 1_000_000) as i64
}

impl Time {
    pub(crate) fn new(margin: Duration) -> Self {
        Self { margin: ms(margin), engine: None }
    }

    /// The latest time that the engine's clock may show now. `machine` is the clock of this machine. All are in
    /// milliseconds since 1970.
    pub(crate) fn latest(&self, now: Moment, machine: u64) -> u64 {
        (self.now(now).unwrap_or(machine) as i64 + self.margin).max(0) as u64
    }

    /// The time by the engine's clock, if it was ever known.
    pub(crate) fn now(&self, now: Moment) -> Option<u64> {
        self.engine.map(|(offset, _)| (local(now) + offset).max(0) as u64)
    }

    /// The engine's clock has shown this time, at some moment between when it was asked and now.
    ///
    /// # Errors
    /// If that can't be, with the reason.
    pub(crate) fn hear(&mut self, engine: u64, asked: Moment, now: Moment, machine: u64) -> Result<(), String> {
        let on_the_way = ms(now.since(asked));
        let (known, whose) = match self.now(now) {
            Some(known) => (known, "by this node's monotonic clock it should show"),
            // An answer that took so long says little.
            None if on_the_way > self.margin => {
                return Err("the engine's answer took too long to set a clock by".into());
            }
            None => (machine, "the clock of this machine shows"),
        };
        let ahead = engine as i64 - known as i64;
        let off = if ahead < 0 { (ahead + on_the_way).min(0) } else { ahead };
        if off.abs() > self.margin {
            let direction = if off > 0 { "ahead" } else { "behind" };
            return Err(format!(
                "the clocks contradict each other: the engine's clock shows {engine}, in milliseconds since 1970, and \
                 {whose} {known}: it is {} s {direction}, and {} s are allowed",
                off.abs() / 1000,
                self.margin / 1000
            ));
        }
        let offset = match self.engine {
            Some((offset, since)) => {
                let most = ms(now.since(since)) / DRIFT;
                offset + off.clamp(-most, most)
            }
            None => engine as i64 - local(now),
        };
        // Otherwise a node that asks often would never follow.
        if self.engine.is_none_or(|(_, since)| ms(now.since(since)) >= DRIFT) {
            self.engine = Some((offset, now));
        }
        Ok(())
    }

    /// Whether the log may have come to this tick.
    pub(crate) fn allows(&self, tick: Tick, resolution: u64, now: Moment, machine: u64) -> Result<(), String> {
        let (begins, latest) = (u64::from(tick) * resolution * 1000, self.latest(now, machine));
        if begins <= latest {
            return Ok(());
        }
        Err(format!(
            "the clocks contradict each other: the log is at a time of {begins}, in milliseconds since 1970, and by \
             this node's own clocks it can't be later than {latest}"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGIN: u64 = 1_800_000_000_000;

    fn at(ms: u64) -> Moment {
        Moment((7000 + ms) * 1_000_000)
    }

    fn known() -> Time {
        let mut time = Time::new(Duration::from_secs(5));
        time.hear(BEGIN, at(0), at(0), BEGIN + 4000).unwrap();
        time
    }

    #[test]
    fn a_node_begins_where_the_engine_and_its_machine_agree() {
        let mut time = Time::new(Duration::from_secs(5));
        assert_eq!(time.latest(at(0), BEGIN), BEGIN + 5000);
        for (engine, named) in [(BEGIN + 5001, "ahead"), (BEGIN - 5001, "behind")] {
            let why = time.hear(engine, at(0), at(0), BEGIN).unwrap_err();
            assert!(why.contains(named) && time.now(at(0)).is_none(), "{why}");
        }
        time.hear(BEGIN + 5000, at(0), at(0), BEGIN).unwrap();
        assert_eq!(time.now(at(250)), Some(BEGIN + 5250));
        // An answer that has waited while the node was paused is old, and not wrong.
        assert_eq!(time.hear(BEGIN + 5100, at(100), at(3_600_000), 0), Ok(()));
        assert!(time.hear(BEGIN - 1, at(100), at(3_600_000), 0).is_err());
        assert!(Time::new(Duration::from_secs(5)).hear(BEGIN, at(0), at(6000), BEGIN).is_err());
    }

    #[test]
    fn a_jump_is_refused_however_often_it_is_told_and_forgotten_when_the_clock_is_right_again() {
        let mut time = known();
        for jump in [3 * 3_600_000, 6000, 86_400_000 * 30] {
            for beat in 1..1000 {
                let why = time.hear(BEGIN + 250 * beat + jump, at(250 * beat), at(250 * beat), 0).unwrap_err();
                assert!(why.contains("ahead"), "{why}");
            }
            assert!(time.latest(at(250_000), 0) <= BEGIN + 250_000 + 5000);
        }
        assert!(time.hear(BEGIN - 3_600_000, at(250_000), at(250_000), 0).is_err());
        assert_eq!(time.hear(BEGIN + 250_000, at(250_000), at(250_000), 0), Ok(()));
    }

    #[test]
    fn small_jumps_do_not_add_up_and_drift_is_followed() {
        let mut time = known();
        // A clock that runs twice as fast, in steps that are each within the margin.
        let refused = (1..100).find(|beat| time.hear(BEGIN + 500 * beat, at(250 * beat), at(250 * beat), 0).is_err());
        assert_eq!(refused, Some(21));
        // A clock that gains 0.05 % is followed for days.
        let mut time = known();
        for second in (0..300_000).step_by(10) {
            time.hear(BEGIN + 1000 * second + second / 2, at(1000 * second), at(1000 * second), 0).unwrap();
        }
    }

    #[test]
    fn a_tick_of_the_log_is_allowed_from_its_beginning_on() {
        let time = known();
        let tick = (BEGIN / 1000 + 5) as Tick;
        assert_eq!(time.allows(tick, 1, at(0), 0), Ok(()));
        assert!(time.allows(tick + 1, 1, at(0), 0).is_err_and(|why| why.contains("contradict")));
        assert_eq!(time.allows(tick + 1, 1, at(1000), 0), Ok(()));
    }
}

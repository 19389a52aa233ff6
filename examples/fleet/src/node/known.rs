//! PURE: what a node knows about the log and the engine's clock.

use super::clock::Moment;
use crate::log::{Epoch, Head, Place};

/// The furthest place that a node knows. Each request carries it, so an engine that has lost something reports
/// that.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    pub(crate) place: Place,
    /// The engine's clock, in milliseconds since 1970, and when this answer came.
    engine: (u64, Moment),
}

impl Known {
    /// For a fleet that the node has just joined.
    pub(crate) fn new(head: Head, now: Moment) -> Self {
        Self { place: head.place(), engine: (head.now, now) }
    }

    pub(crate) fn head(&mut self, head: Head, now: Moment) {
        self.at(head.epoch, head.position);
        if head.epoch == self.place.epoch {
            self.engine = (head.now, now);
        }
    }

    /// The log has reached this position. News of another log is ignored, because it comes too late.
    pub(crate) fn at(&mut self, epoch: Epoch, position: u64) {
        if epoch == self.place.epoch {
            self.place.position = self.place.position.max(position);
        }
    }

    /// The least that the engine's clock can show now, in milliseconds since 1970. (The answer took some time on
    /// its way.)
    pub(crate) fn engine_now(&self, now: Moment) -> u64 {
        let (engine, at) = self.engine;
        engine.saturating_add(now.since(at).as_millis() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(epoch: u64, position: u64, now: u64) -> Head {
        Head { epoch: Epoch(epoch), position, first: 1, tick: 0, now }
    }

    #[test]
    fn what_is_known_never_goes_back_and_is_of_one_log() {
        let mut known = Known::new(head(7, 10, 5000), Moment(1));
        known.at(Epoch(7), 12);
        known.head(head(7, 11, 6000), Moment(1));
        assert_eq!(known.place, Place { epoch: Epoch(7), position: 12 });
        known.at(Epoch(8), 100);
        known.head(head(8, 100, 9000), Moment(1));
        assert_eq!(known.place, Place { epoch: Epoch(7), position: 12 });
        assert_eq!(known.engine_now(Moment(2_000_000_001)), 8000);
    }
}

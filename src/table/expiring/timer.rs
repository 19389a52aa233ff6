//! CONCURRENT: the time of a filter that moves its clock on itself, counted from what a source of time shows.
//!
//! The filter's own tick `n` begins when its time is `n` times the length of a tick. A timer does not move the clock on: that is
//! `Table::move_on`, by the tick of the time that an operation has read (`table/expiring/recent.rs`).
//!
//! # Where the time begins
//! The filter's time goes on from `own`, which is 0 in a new filter. What the source showed then is its *beginning*. That of a
//! caller's clock is what it shows when the timer gets it. The system may have no clock, so it is not read until an operation
//! needs the time. The first thread that stores its reading sets the beginning, by a compare-exchange, and all threads go by
//! that one. A thread whose reading was earlier reads the time `own`. So once a thread has read the time, each reading of the
//! source means one certain time. (If the beginning were set twice, the time would go back by what lies between.)
//!
//! # A source that goes back
//! The filter's time does not go back with it: the clock stands still until the source has caught up. But when the filter gets
//! another source, or is saved, its time is to go on from the latest that it has shown. To store each time that is read would
//! have all lookups write to one cache line. So a time is noted if it is later than the last one that was, by a *step*, a
//! thousandth of a tick: what is stored is from which time on another is *due* to be noted. Of several threads, the latest time
//! wins, by a maximum. So the time that was shown last is known up to a step if the source has gone back, and exactly otherwise.
//!
//! # One comparison for both
//! Until the time begins, what is due is 0, and every thread takes the slow path, which sets the beginning and then notes the
//! time. A thread on the fast path has read with acquire what is due, and so sees the beginning that was set before. (If it did
//! not, it would take the time for `own`, however long ago the other thread's reading was.)

use core::time::Duration;
use std::sync::Arc;

use crate::machine::time::{TimeSource, monotonic_time};
use crate::sync::{AtomicU64, Ordering};

/// The beginning of a source that was not read yet: then no reading is later.
const UNREAD: u64 = u64::MAX;

/// The time of a filter.
pub(crate) struct Timer {
    source: Source,
    /// The filter's time at the beginning, in nanoseconds, like all below.
    own: u64,
    /// What the source showed at the beginning.
    begin: AtomicU64,
    /// From which time on one is to be noted: a step after the one that was noted last. 0 before the beginning.
    due: AtomicU64,
    step: u64,
}

/// A source that can be read.
enum Source {
    System,
    /// It counts from what the clock showed when the timer got it. So a clock may start anywhere.
    Caller {
        clock: Arc<dyn Fn() -> Duration + Send + Sync>,
        start: u128,
    },
}

impl Source {
    fn read(&self) -> u64 {
        let nanoseconds = match self {
            Self::System => monotonic_time().as_nanos(),
            Self::Caller { clock, start } => clock().as_nanos().saturating_sub(*start),
        };
        // That is 584 years of the machine, or since the timer got the clock.
        u64::try_from(nanoseconds).unwrap_or(u64::MAX)
    }
}

impl Timer {
    /// A timer that goes on from this time, for ticks of this length. A clock of the caller's is read now.
    pub(crate) fn new(own: u64, per_tick: u64, source: TimeSource) -> Self {
        let step = (per_tick >> 10).max(1);
        let (source, begin, due) = match source {
            TimeSource::System => (Source::System, UNREAD, 0),
            TimeSource::Caller(clock) => {
                (Source::Caller { start: clock().as_nanos(), clock }, 0, own.saturating_add(step))
            }
        };
        Self { source, own, begin: AtomicU64::new(begin), due: AtomicU64::new(due), step }
    }

    /// Where it takes the time from.
    pub(crate) fn source(&self) -> TimeSource {
        match &self.source {
            Source::System => TimeSource::System,
            Source::Caller { clock, .. } => TimeSource::Caller(clock.clone()),
        }
    }

    /// The time, by a reading of the source. It may be before one that was read earlier, if the source goes back.
    ///
    /// It is a call, so that a filter which counts keys saves no registers for it.
    #[inline(never)]
    pub(crate) fn time(&self) -> u64 {
        self.time_at(self.source.read())
    }

    /// The latest time that the filter has shown so far. A source that was not read is not read for this.
    pub(crate) fn so_far(&self) -> u64 {
        // Relaxed: it is seen if any thread has read the time in a call that ended before this one began.
        match self.due.load(Ordering::Relaxed) {
            0 => self.own,
            _ => self.so_far_at(self.source.read()),
        }
    }

    /// The same when the source shows this.
    pub(crate) fn so_far_at(&self, reading: u64) -> u64 {
        // Relaxed: what was noted in calls that ended before this one began is seen.
        self.time_at(reading).max(self.due.load(Ordering::Relaxed) - self.step)
    }

    /// The time when the source shows this.
    #[inline]
    pub(crate) fn time_at(&self, reading: u64) -> u64 {
        // Acquire, with `note`: where a time was noted, the beginning is seen.
        let due = self.due.load(Ordering::Acquire);
        // Relaxed: it never changes once it is set.
        let time = self.since(self.begin.load(Ordering::Relaxed), reading);
        if time < due { time } else { self.note(reading) }
    }

    fn since(&self, begin: u64, reading: u64) -> u64 {
        self.own.saturating_add(reading.saturating_sub(begin))
    }

    /// Notes the time when the source shows this. Returns the time.
    #[cold]
    fn note(&self, reading: u64) -> u64 {
        // Relaxed: see `time_at`.
        let begin = match self.begin.load(Ordering::Relaxed) {
            UNREAD => self.begin_at(reading),
            begin => begin,
        };
        let time = self.since(begin, reading);
        // Release: see `time_at`.
        self.due.fetch_max(time.saturating_add(self.step), Ordering::Release);
        time
    }

    /// Sets the beginning to this reading, unless another thread has set it. Returns the beginning.
    fn begin_at(&self, reading: u64) -> u64 {
        loop {
            // Relaxed: see `time_at`.
            match self.begin.compare_exchange_weak(UNREAD, reading, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return reading,
                // It may fail without a reason.
                Err(UNREAD) => (),
                Err(begin) => return begin,
            }
        }
    }
}
